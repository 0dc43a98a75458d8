-- Writes a delivery over what is stored, with everything that follows from it. `fixed` is what the
-- next record says of state, times and rev; the claim stays where the next state is still sending.
local function put(key, id, old, fixed, lane, body, done)
  local d = {}
  d.state, d.flags, d.ended, d.rev, d.lease, d.due, d.receipt = take('>BBI6I6I6I6I6', fixed)
  d.pos, d.slot, d.lane, d.tenant, d.fence = old.pos, old.slot, lane, old.tenant, old.fence
  local nonce, lapse, worker = old.nonce, old.lapse, old.worker
  if d.state ~= SENDING then
    nonce, lapse, worker = string.rep('\0', 8), 0, string.rep('\0', 24)
  elseif has(old.flags, HELD_ALONE) then
    d.flags = d.flags + HELD_ALONE
  end
  local head = pack(D_HEAD, d.pos, d.state, d.flags, d.ended, d.rev, d.fence, nonce, lapse, worker, d.lease,
    d.due, done.fence, done.nonce, done.rev, d.slot, old.nid, #old.tenant, #old.collapse, #lane)
  call('SET', key, head .. old.tenant .. old.collapse .. lane .. body)

  if old.state <= DEFERRED_OR_WAITING then dequeue(old, id) end
  if d.state <= DEFERRED_OR_WAITING then enqueue(d, id) end
  if old.state == SENDING and d.state ~= SENDING then release(id) end
  if has(old.flags, RECEIPT) then call('ZREM', root .. 'receipts', id) end
  if d.receipt > 0 then call('ZADD', root .. 'receipts', int(d.receipt), id) end
  if old.state == UNKNOWN then call('ZREM', root .. 'unknown', id) end
  if d.state == UNKNOWN then call('ZADD', root .. 'unknown', int(d.ended), id) end
  count_state(old, -1)
  count_state(d, 1)
  return d
end

-- Brings the notification to what its deliveries come to after `d` was written.
local function roll_up(nid, d)
  local key = root .. 'n' .. nid
  local raw = call('GETRANGE', key, 0, N_SIZE + 6)
  local n = notification(raw)
  local state, ended, held = d.state, d.ended, (d.state == FAILED or d.state == PARKED) and 1 or 0
  if n.count > 1 then
    raw = call('GETRANGE', key, 0, N_SIZE + n.entries * ENTRY + n.count * 12)
    state, ended, held = 255, 0, 0
    local open = false
    for place = 1, n.count do
      local one, _, at = take('>BBI6', call('GETRANGE', root .. 'd' .. delivery_id(n, raw, place), 7, 14))
      state = math.min(state, one)
      if at == 0 then open = true end
      ended = math.max(ended, at)
      if one == FAILED or one == PARKED then held = 1 end
    end
    if open then ended = 0 end
  end
  if state == n.state and ended == n.ended and held == 0 and n.held == 0 then return end
  local _, owner = take('>c1I6', raw, N_SIZE + 1)
  if state ~= n.state then
    index_state('ZREM', n, owner, n.state, nid)
    index_state('ZADD', n, owner, state, nid)
  end
  if n.ended ~= 0 then forget_ages(nid) end
  n.state, n.ended, n.held = state, ended, held
  call('SETRANGE', key, 12, pack('>BBI6', state, held, ended))
  ages(n, nid)
end
