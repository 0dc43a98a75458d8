-- Ends lapsed claims. KEYS[2..]: the deliveries; ARGV[6..]: per item the token and the lapse that were
-- seen, the rev that it was decided on, fixed part, lane, body. Answers as spend; where there is no claim
-- (any more), what is stored after a 2: the reply to this very reclaim may have been lost.
local now = clock()
local answers = {}
for item = 2, #KEYS do
  local key, at = KEYS[item], 6 + (item - 2) * 6
  local fixed = ARGV[at + 3]
  local raw = front(key)
  local answer = 1
  if not raw then
    answer = 3
  elseif byte(raw, 24) ~= SENDING then
    answer = { 2, call('GET', key) }
  elseif not held_by(raw, ARGV[at]) or six(raw, 52) ~= tonumber(ARGV[at + 1]) or six(raw, 52) > now then
    answer = 2
  elseif sub(raw, 32, 37) ~= ARGV[at + 2] or byte(fixed, 1) == SENDING then
    answer = call('GET', key)
  else
    put(key, sub(key, #root + 2), raw, fixed, ARGV[at + 4], ARGV[at + 5], sub(raw, 94, 113))
    roll_up(notification_of(raw), fixed)
  end
  answers[item - 1] = answer
end
return { finish(), answers }
