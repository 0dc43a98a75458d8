-- Ends places in the ledgers of caps. KEYS: the ledgers. ARGV[1]: the time or -1; then for each ledger the
-- reservation and what becomes of its place: 'count' it up to now at the latest, or give it 'back'.
local call = redis.call
local now = tonumber(ARGV[1])
if now < 0 then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local until_now = string.format('%.0f', now)
for at, key in ipairs(KEYS) do
  local mine, fate = ARGV[2 * at], ARGV[2 * at + 1]
  if fate == 'back' then
    call('ZREM', key, mine)
  else
    call('ZADD', key, 'XX', 'LT', until_now, mine)
  end
end
return 1
