-- Writes under claims. KEYS[2..]: the deliveries; ARGV[6..]: per item its token, the rev that it was
-- decided on and the one that it makes (six bytes each), fixed part, lane, body. Answers as spend.
local answers = {}
for item = 2, #KEYS do
  local key, at = KEYS[item], 6 + (item - 2) * 6
  local token, rev, made, fixed = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local raw = front(key)
  local answer = 1
  if not raw then
    answer = 3
  elseif sub(raw, 94, 113) == token .. made then
    answer = 1
  elseif not held_by(raw, token) then
    answer = 2
  elseif sub(raw, 32, 37) ~= rev then
    answer = call('GET', key)
  else
    put(key, sub(key, #root + 2), raw, fixed, ARGV[at + 4], ARGV[at + 5], token .. made)
    roll_up(notification_of(raw), fixed)
  end
  answers[item - 1] = answer
end
return { finish(), answers }
