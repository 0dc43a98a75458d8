-- Writes a delivery over what is stored (`raw`), with everything that follows from it. `fixed` is what the
-- next record says of state, flags, ended, rev, lease, due and until when a receipt is waited for; the
-- claim stays where the next state is still sending. `done`: of the last settle, as it is to stand.
local NO_CLAIM = string.rep('\0', 38)

local function put(key, id, raw, fixed, lane, body, done)
  local tenant, collapse = byte(raw, 21, 22)
  local texts = sub(raw, D_SIZE + 1, D_SIZE + tenant + collapse)
  local old, old_flags, old_lane = byte(raw, 24), byte(raw, 25), lane_of(raw)
  local state, flags = byte(fixed, 1, 2)
  local head, claim = sub(fixed, 1, 14), sub(raw, 38, 43) .. NO_CLAIM
  if state == SENDING then
    claim = sub(raw, 38, 81)
    if has(old_flags, HELD_ALONE) then head = char(state, flags + HELD_ALONE) .. sub(fixed, 3, 14) end
  end
  call('SET', key, sub(raw, 1, 22) .. char(#lane) .. head .. claim .. sub(fixed, 15, 26) .. done .. texts .. lane .. body)

  if old <= WAITING then dequeue(raw, id) end
  if state <= WAITING then
    enqueue(side_of(flags) .. lane, sub(texts, 1, tenant), place(raw, id), six(fixed, 21))
  end
  if old == SENDING and state ~= SENDING then release(id) end
  if has(old_flags, RECEIPT) then call('ZREM', root .. 'receipts', id) end
  local receipt = six(fixed, 27)
  if receipt > 0 then call('ZADD', root .. 'receipts', int(receipt), id) end
  if old == UNKNOWN then call('ZREM', root .. 'unknown', id) end
  if state == UNKNOWN then call('ZADD', root .. 'unknown', int(six(fixed, 3)), id) end
  count_state(old, old_lane, -1)
  count_state(state, lane, 1)
end

-- Brings the notification to what its deliveries come to after one was written as `fixed`.
local function roll_up(nid, fixed)
  local key = root .. 'n' .. nid
  local raw = call('GETRANGE', key, 0, N_SIZE - 1)
  local old, was_held, was_ended, count_ = take('>BBI6B', raw, 13)
  local state, _, ended = take('>BBI6', fixed)
  local held = (state == FAILED or state == PARKED) and 1 or 0
  if count_ > 1 then
    local ids = call('GETRANGE', key, 0, N_SIZE + count_ * 12 - 1)
    state, ended, held = 255, 0, 0
    local open = false
    for nth = 1, count_ do
      local one, _, at = take('>BBI6', call('GETRANGE', root .. 'd' .. delivery_id(ids, nth), 23, 30))
      state = math.min(state, one)
      if at == 0 then open = true end
      ended = math.max(ended, at)
      if one == FAILED or one == PARKED then held = 1 end
    end
    if open then ended = 0 end
  end
  if state == old and ended == was_ended and held == 0 and was_held == 0 then return end
  if state ~= old then index_state(raw, state, nid) end
  if was_held == 1 then call('ZREM', root .. 'holds', nid) end
  call('SETRANGE', key, 12, pack('>BBI6', state, held, ended))
  ages(raw, nid, ended, held)
end
