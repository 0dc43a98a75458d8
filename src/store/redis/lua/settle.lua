-- Writes under claims. KEYS[2..]: the deliveries; ARGV[6..]: per item fence, nonce, rev, the fence that
-- the next state names (0: none), fixed part, lane, body. Answers as spend.
local answers = {}
for item = 2, #KEYS do
  local key, at = KEYS[item], 6 + (item - 2) * 7
  local id = sub(key, #root + 2)
  local fence, nonce, rev, named = tonumber(ARGV[at]), ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local d = front(key)
  local answer = 1
  if not d then
    answer = 3
  elseif d.done_fence == fence and d.done_nonce == nonce and d.done_rev == rev then
    answer = 1
  elseif not held_by(d, fence, nonce) then
    answer = 2
  elseif d.rev + 1 ~= rev or (named ~= 0 and named ~= d.fence) then
    answer = call('GET', key)
  else
    local done = { fence = fence, nonce = nonce, rev = rev }
    roll_up(d.nid, put(key, id, d, ARGV[at + 4], ARGV[at + 5], ARGV[at + 6], done))
  end
  answers[item - 1] = answer
end
return { finish(), answers }
