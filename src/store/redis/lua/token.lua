-- Which device has a token, in one hash: "now" is "<stamp> <place>" of whoever registered it last, "-<place>" the
-- stamp of one that had it before and has not been taken away yet. ARGV[1]: which verb; ARGV[2]: whether the same was
-- asked before, and its answer lost; ARGV[3]: a device's place; ARGV[4]: the stamp of its registration.
local call = redis.call
local place, stamp = ARGV[3], ARGV[4]
local own = stamp .. ' ' .. place

-- Answers places and stamps of those that are to be taken away, or nothing where it is not known whether another
-- took the token since the first time this was asked: to take it once more would be to take it from that one, which
-- may have taken away our device already, so that in the end nobody would have it.
local function take()
  local now = call('HGET', KEYS[1], 'now')
  if now ~= own then
    if ARGV[2] == '1' then return false end
    if now then
      local before, whose = string.match(now, '^(%S+) (.*)$')
      if whose ~= place then call('HSET', KEYS[1], '-' .. whose, before) end
    end
    call('HSET', KEYS[1], 'now', own)
    call('HDEL', KEYS[1], '-' .. place)
  end
  local others, all = {}, call('HGETALL', KEYS[1])
  for at = 1, #all, 2 do
    if string.sub(all[at], 1, 1) == '-' then
      others[#others + 1] = string.sub(all[at], 2)
      others[#others + 1] = all[at + 1]
    end
  end
  return others
end

local function leave()
  if call('HGET', KEYS[1], 'now') == own then call('HDEL', KEYS[1], 'now') end
  if call('HGET', KEYS[1], '-' .. place) == stamp then call('HDEL', KEYS[1], '-' .. place) end
  return 1
end

local verbs = { take = take, leave = leave }
return { verbs[ARGV[1]]() }
