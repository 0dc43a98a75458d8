-- Shares of paces. KEYS: a hash for each, node -> "number held parts until". ARGV[1]: the time or -1;
-- ARGV[2]: the node; ARGV[3]: the number of its question; ARGV[4]: how long an answer counts; then for each
-- pace into how many parts it is split (0: the node wants none any more) and how many of them the node goes
-- by. Answers how many it may go by. The same as `Shares::ask` in the domain, which says why.
local call, floor, ceil = redis.call, math.floor, math.ceil
local now = tonumber(ARGV[1])
if now < 0 then
  local time = call('TIME')
  now = time[1] * 1000 + floor(time[2] / 1000)
end
local node, number = ARGV[2], tonumber(ARGV[3])
-- Hashes of paces that are gone from the configuration go by themselves.
local KEPT = 86400000

local function ask(key, parts, using)
  local own = call('HGET', key, node)
  if own and tonumber(string.match(own, '^%d+')) >= number then return 0 end
  local count, before, taken = 1, 0, 0
  local all = call('HGETALL', key)
  for at = 1, #all, 2 do
    local held, of, lapse = string.match(all[at + 1], '^%d+ (%d+) (%d+) (%d+)$')
    if all[at] == node then
      call('HDEL', key, node)
    elseif tonumber(lapse) <= now then
      call('HDEL', key, all[at])
    else
      count = count + 1
      if all[at] < node then before = before + 1 end
      if parts > 0 then taken = taken + ceil(held * parts / of) end
    end
  end
  if parts == 0 then return 0 end
  local fair = floor(parts / count)
  if before < parts % count then fair = fair + 1 end
  local granted = math.max(0, math.min(fair, parts - taken))
  call('HSET', key, node, string.format('%d %d %d %d', number, math.max(granted, using), parts, now + ARGV[4]))
  call('PEXPIRE', key, KEPT)
  return granted
end

local answers = {}
for at = 1, #KEYS do
  answers[at] = ask(KEYS[at], tonumber(ARGV[3 + 2 * at]), tonumber(ARGV[4 + 2 * at]))
end
return answers
