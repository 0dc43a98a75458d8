-- Puts back what this node knows to have been acknowledged and the server has lost. ARGV[6]: the highest
-- fence that was seen; then per item (KEYS[2..]) its kind and five values:
--   's' settled: token, rev, fixed part, lane, body
--   'c' claimed: token, rev, worker, 1 where the call may have been made, nothing
--   'e' accepted: nothing
-- Revs are compared as numbers: Lua compares texts by the server's locale, where packed bytes have no order.
-- Per item: 1 put back, 2 it was there or has gone another way, 3 the record is lost.
local now = clock()
local answers = {}
local lowest = tonumber(ARGV[6])
if lowest > tonumber(stood[3] or '0') then call('SET', root .. 'floor', ARGV[6]) end

local function settled(key, id, raw, at)
  local token, rev, fixed = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if six(raw, 32) >= six(rev, 1) then return 2 end
  put(key, id, raw, fixed, ARGV[at + 3], ARGV[at + 4], token .. rev)
  roll_up(notification_of(raw), fixed)
  return 1
end

-- Somebody is at it: the claim stands again, under its own token. Also where another claim was given since the
-- loss: over a lower fence, and where the call may have been made over one that has not got so far.
local function claimed(key, id, raw, at)
  local token, rev, state, flags = ARGV[at], ARGV[at + 1], byte(raw, 24), byte(raw, 25)
  local same = held_by(raw, token)
  local ours, theirs, called = six(token, 1), six(raw, 38), ARGV[at + 3] == '1' and not has(flags, SPENT)
  local over = state == SENDING and (ours > theirs or (ours == theirs and called))
  if six(raw, 32) >= six(rev, 1) or not (same or over or state <= WAITING) then return 2 end
  if state <= WAITING then
    local lane = lane_of(raw)
    dequeue(raw, id)
    count_state(state, lane, -1)
    count_state(SENDING, lane, 1)
  end
  if ARGV[at + 3] == '1' and not has(flags, SPENT) then flags = flags + SPENT end
  local lapse = now + six(raw, 82)
  call('SETRANGE', key, 23,
    char(SENDING, flags) .. sub(raw, 26, 31) .. rev .. token .. pack('>I6', lapse) .. ARGV[at + 2])
  lease(id, lapse)
  return 1
end

for item = 2, #KEYS do
  local key, at = KEYS[item], 7 + (item - 2) * 6
  local kind, id, answer = ARGV[at], sub(key, #root + 2), 3
  if kind == 'e' then
    if call('EXISTS', key) == 1 or call('HGET', tomb_of(id, tombs()), id) then answer = 2 end
  else
    local raw = front(key)
    if raw then
      answer = (kind == 's' and settled or claimed)(key, id, raw, at + 1)
    end
  end
  answers[item - 1] = answer
end
return { finish(), answers }
