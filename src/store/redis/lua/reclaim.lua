-- Ends lapsed claims. KEYS[2..]: the deliveries; ARGV[6..]: per item the fence, nonce and lapse that
-- were seen, rev, fixed part, lane, body. Answers as spend; where there is no claim (any more), what is
-- stored after a 2: the reply to this very reclaim may have been lost.
local now = clock()
local answers = {}
for item = 2, #KEYS do
  local key, at = KEYS[item], 6 + (item - 2) * 7
  local id = sub(key, #root + 2)
  local fence, nonce, lapse, rev = tonumber(ARGV[at]), ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local d = front(key)
  local answer = 1
  if not d then
    answer = 3
  elseif d.state ~= SENDING then
    answer = { 2, call('GET', key) }
  elseif d.fence ~= fence or d.nonce ~= nonce or d.lapse ~= lapse or d.lapse > now then
    answer = 2
  elseif d.rev + 1 ~= rev or take('>B', ARGV[at + 4]) == SENDING then
    answer = call('GET', key)
  else
    local done = { fence = d.done_fence, nonce = d.done_nonce, rev = d.done_rev }
    roll_up(d.nid, put(key, id, d, ARGV[at + 4], ARGV[at + 5], ARGV[at + 6], done))
  end
  answers[item - 1] = answer
end
return { finish(), answers }
