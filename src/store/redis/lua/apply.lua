-- Writes without claims. KEYS[2..]: the deliveries; ARGV[6..]: per item the rev that it was decided on, the
-- fence that the next state names (nothing: none), fixed part, lane, body. Per item: 1 done, 3 gone, or
-- what is stored.
local answers = {}
for item = 2, #KEYS do
  local key, at = KEYS[item], 6 + (item - 2) * 5
  local named, fixed = ARGV[at + 1], ARGV[at + 2]
  local raw = front(key)
  local answer = 1
  if not raw then
    answer = 3
  elseif sub(raw, 32, 37) ~= ARGV[at] or (byte(raw, 24) == SENDING) ~= (byte(fixed, 1) == SENDING)
    or (named ~= '' and named ~= sub(raw, 38, 43)) then
    -- Without a claim nobody may end one, nor make one up.
    answer = call('GET', key)
  else
    put(key, sub(key, #root + 2), raw, fixed, ARGV[at + 3], ARGV[at + 4], sub(raw, 94, 113))
    roll_up(notification_of(raw), fixed)
  end
  answers[item - 1] = answer
end
return { finish(), answers }
