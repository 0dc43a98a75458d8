-- One recipient, in one hash: "p" is the profile, "d:<id>" a device, its text behind the stamp of its latest
-- registration and a space. What they say only Belfry reads. ARGV[1]: which verb.
local call = redis.call

local function whole()
  return call('HGETALL', KEYS[1])
end

-- ARGV[2]: the field.
local function one()
  return call('HGET', KEYS[1], ARGV[2])
end

-- ARGV[2]: the profile.
local function profile()
  call('HSET', KEYS[1], 'p', ARGV[2])
  return 1
end

-- A device, over what was read before. ARGV[2]: the field; ARGV[3]: as it was, or nothing; ARGV[4]: as it is to be;
-- ARGV[5]: most devices. Answers 1 where it is so now, 0 where another has written it, -1 where there is no room.
local function device()
  local now = call('HGET', KEYS[1], ARGV[2]) or ''
  if now == ARGV[4] then return 1 end
  if now ~= ARGV[3] then return 0 end
  if now == '' and call('HLEN', KEYS[1]) - call('HEXISTS', KEYS[1], 'p') >= tonumber(ARGV[5]) then return -1 end
  call('HSET', KEYS[1], ARGV[2], ARGV[4])
  return 1
end

-- Takes away devices that have not been registered anew since they were read. ARGV[2]: 1 where the profile goes as
-- well; then a field and its stamp each. Answers how many others stay.
local function drop()
  local others = 0
  if ARGV[2] == '1' then call('HDEL', KEYS[1], 'p') end
  for at = 3, #ARGV, 2 do
    local now = call('HGET', KEYS[1], ARGV[at])
    local stamp = ARGV[at + 1] .. ' '
    if now and string.sub(now, 1, #stamp) == stamp then
      call('HDEL', KEYS[1], ARGV[at])
    elseif now then
      others = others + 1
    end
  end
  return others
end

local verbs = { whole = whole, one = one, profile = profile, device = device, drop = drop }
return { verbs[ARGV[1]]() }
