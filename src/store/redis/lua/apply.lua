-- Writes without claims. KEYS[2..]: the deliveries; ARGV[5..]: per item rev, the fence that the next
-- state names (0: none), fixed part, lane, body. Per item: 1 done, 3 gone, or what is stored.
local answers = {}
for item = 2, #KEYS do
  local key, at = KEYS[item], 5 + (item - 2) * 5
  local id = sub(key, #root + 2)
  local rev, named = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local d = front(key)
  local answer = 1
  if not d then
    answer = 3
  else
    -- Without a claim nobody may end one, nor make one up.
    local sending = take('>B', ARGV[at + 2]) == SENDING
    if d.rev + 1 ~= rev or (d.state == SENDING) ~= sending or (named ~= 0 and named ~= d.fence) then
      answer = call('GET', key)
    else
      local done = { fence = d.done_fence, nonce = d.done_nonce, rev = d.done_rev }
      roll_up(d.nid, put(key, id, d, ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], done))
    end
  end
  answers[item - 1] = answer
end
return { finish(), answers }
