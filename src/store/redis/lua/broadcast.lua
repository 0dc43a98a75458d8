-- Broadcasts: of an owner one hash of those that stand, by id; a value is the rev in 16 digits, then what only Belfry
-- reads. Under the same tag what each of them says, and the list of those that somebody has to look after, whose members
-- are an owner's digest and an id. Chunks of rows are texts of their own, anywhere. ARGV[1]: which verb.
local call, sub = redis.call, string.sub
local REV, DIGEST = 16, 16

-- KEYS: owner's, list, says. ARGV[2]: id; ARGV[3]: value; ARGV[4]: what it says; ARGV[5]: most of them.
local function create()
  local before = call('HGET', KEYS[1], ARGV[2])
  if before then return { before, call('GET', KEYS[3]) or '' } end
  if call('HLEN', KEYS[1]) >= tonumber(ARGV[5]) then return {} end
  call('SET', KEYS[3], ARGV[4])
  call('HSET', KEYS[1], ARGV[2], ARGV[3])
  return { ARGV[3], ARGV[4] }
end

-- KEYS: owner's, list. ARGV[2]: id; ARGV[3]: the rev before; ARGV[4]: value; ARGV[5]: member of the list; ARGV[6]: 1 where
-- it is on it from now on.
local function write()
  local now = call('HGET', KEYS[1], ARGV[2])
  if now == ARGV[4] then return 1 end
  if not now or sub(now, 1, REV) ~= ARGV[3] then return 0 end
  call('HSET', KEYS[1], ARGV[2], ARGV[4])
  if ARGV[6] == '1' then call('ZADD', KEYS[2], 0, ARGV[5]) else call('ZREM', KEYS[2], ARGV[5]) end
  return 1
end

-- KEYS: owner's, list, says. ARGV[2]: id; ARGV[3]: its rev; ARGV[4]: member of the list.
local function remove()
  local now = call('HGET', KEYS[1], ARGV[2])
  if not now then return 1 end
  if sub(now, 1, REV) ~= ARGV[3] then return 0 end
  call('HDEL', KEYS[1], ARGV[2])
  call('ZREM', KEYS[2], ARGV[4])
  call('DEL', KEYS[3])
  return 1
end

-- KEYS: owner's. ARGV[2]: id.
local function one()
  return call('HGET', KEYS[1], ARGV[2]) or ''
end

local function all()
  return call('HVALS', KEYS[1])
end

-- KEYS: says, or a chunk.
local function text()
  return call('GET', KEYS[1])
end

-- KEYS: the list. ARGV[2]: from where, as a range has it; ARGV[3]: most. Answers members and values; a member without a
-- value goes.
local function active()
  local root, found = sub(KEYS[1], 1, -(#'walks' + 1)), {}
  for _, member in ipairs(call('ZRANGEBYLEX', KEYS[1], ARGV[2], '+', 'LIMIT', 0, ARGV[3])) do
    local value = call('HGET', root .. 'bro' .. sub(member, 1, DIGEST), sub(member, DIGEST + 1))
    if not value then call('ZREM', KEYS[1], member) end
    found[#found + 1] = member
    found[#found + 1] = value or ''
  end
  return found
end

-- KEYS: a chunk. ARGV[2]: its rows.
local function put()
  call('SET', KEYS[1], ARGV[2])
  return 1
end

-- KEYS: chunks.
local function clear()
  call('UNLINK', unpack(KEYS))
  return 1
end

local verbs = {
  create = create,
  write = write,
  remove = remove,
  one = one,
  all = all,
  text = text,
  active = active,
  put = put,
  clear = clear,
}
return { verbs[ARGV[1]]() }
