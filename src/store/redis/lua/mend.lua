-- Puts back what this node knows to have been acknowledged and the server has lost. ARGV[6]: the highest
-- fence that was seen; then per item (KEYS[2..]) its kind and six values:
--   's' settled: fence, nonce, rev, fixed part, lane, body
--   'c' claimed: fence, nonce, rev, worker, 1 where the call may have been made, nothing
--   'e' accepted: nothing
-- Per item: 1 put back, 2 it was there or has gone another way, 3 the record is lost.
local now = clock()
local answers = {}
local lowest = tonumber(ARGV[6])
if lowest > tonumber(stood[3] or '0') then call('SET', root .. 'floor', ARGV[6]) end

local function settled(key, id, d, at)
  local fence, nonce, rev = tonumber(ARGV[at]), ARGV[at + 1], tonumber(ARGV[at + 2])
  if d.rev >= rev then return 2 end
  local done = { fence = fence, nonce = nonce, rev = rev }
  roll_up(d.nid, put(key, id, d, ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], done))
  return 1
end

-- Somebody is at it: the claim stands again, under its own token.
local function claimed(key, id, d, at)
  local fence, nonce, rev = tonumber(ARGV[at]), ARGV[at + 1], tonumber(ARGV[at + 2])
  local same = d.state == SENDING and d.fence == fence and d.nonce == nonce
  if d.rev >= rev or not (same or d.state <= DEFERRED_OR_WAITING) then return 2 end
  if not same then
    dequeue(d, id)
    count_state(d, -1)
    count_state({ state = SENDING, lane = d.lane }, 1)
  end
  if ARGV[at + 4] == '1' and not has(d.flags, SPENT) then d.flags = d.flags + SPENT end
  local lapse = now + d.lease
  call('SETRANGE', key, CLAIM_FROM, pack(CLAIM, SENDING, d.flags, d.ended, rev, fence, nonce, lapse, ARGV[at + 3]))
  lease(id, lapse)
  return 1
end

for item = 2, #KEYS do
  local key, at = KEYS[item], 7 + (item - 2) * 7
  local kind, id, answer = ARGV[at], sub(key, #root + 2), 3
  if kind == 'e' then
    if call('EXISTS', key) == 1 or call('HGET', tomb_of(id, tombs()), id) then answer = 2 end
  else
    local d = front(key)
    if d then
      answer = (kind == 's' and settled or claimed)(key, id, d, at + 1)
    end
  end
  answers[item - 1] = answer
end
return { finish(), answers }
