-- What belongs to the whole installation, in one hash each. ARGV[1]: which verb.
local verb, root = ARGV[1], string.sub(KEYS[1], 1, -8)
local call = redis.call

local function secret()
  call('HSETNX', KEYS[1], 'secret', ARGV[2])
  return call('HGET', KEYS[1], 'secret')
end

-- The layout and how many shards there are: fixed by whoever comes first.
local function layout()
  call('HSETNX', KEYS[1], 'layout', ARGV[2])
  call('HSETNX', KEYS[1], 'shards', ARGV[3])
  return call('HMGET', KEYS[1], 'layout', 'shards')
end

-- As they are fixed, where they are: a look begins nothing.
local function fixed()
  return call('HMGET', KEYS[1], 'layout', 'shards')
end

-- What a node knows of the installation, put back where it is gone; then the API keys are gone as well. ARGV[4]:
-- the secret, or nothing from a node that does not need it. Answers what stands.
local function stand()
  if call('HEXISTS', KEYS[1], 'layout') == 0 then
    call('HSET', KEYS[1], 'layout', ARGV[2], 'shards', ARGV[3], 'keyslost', 1)
  end
  if ARGV[4] ~= '' then call('HSETNX', KEYS[1], 'secret', ARGV[4]) end
  return call('HMGET', KEYS[1], 'layout', 'shards', 'secret')
end

-- Where the keys were lost nobody can say that there never was such a one. ARGV[3]: 1 from a node that has seen
-- the installation begun.
local function or_lost(key)
  if key then return key end
  local gone = ARGV[3] == '1' and call('HEXISTS', KEYS[1], 'layout') == 0
  return (gone or call('HEXISTS', KEYS[1], 'keyslost') == 1) and -1
end

-- Whoever makes one has seen that they are gone.
local function create_key()
  call('HDEL', KEYS[1], 'keyslost')
  if call('HSETNX', root .. 'keys', ARGV[2], ARGV[5]) == 0 then return 0 end
  call('HSETNX', root .. 'keyhashes', ARGV[3], ARGV[2])
  -- In the order of their making, also within one moment.
  call('ZADD', root .. 'keyages', ARGV[4], string.format('%012d', call('HLEN', root .. 'keys')) .. ARGV[2])
  return 1
end

local function key_by_hash()
  local id = call('HGET', root .. 'keyhashes', ARGV[2])
  return or_lost(id and call('HGET', root .. 'keys', id))
end

local function key_by_id()
  return call('HGET', root .. 'keys', ARGV[2])
end

-- ARGV[2], ARGV[3]: from which one to which, in the order of their making.
local function list_keys()
  local found = {}
  for i, member in ipairs(call('ZRANGE', root .. 'keyages', ARGV[2], ARGV[3])) do
    found[i] = call('HGET', root .. 'keys', string.sub(member, 13))
  end
  return found
end

-- Only over what was read before: two who revoke at once keep the first time.
local function put_key()
  if call('HGET', root .. 'keys', ARGV[2]) ~= ARGV[3] then return 0 end
  call('HSET', root .. 'keys', ARGV[2], ARGV[4])
  return 1
end

-- What is attached to templates: a hash of the content and of the versions that have it, by a digest of 32 bytes.
local function content_of(digests, nth)
  return root .. 'att' .. string.sub(digests, nth * 32 - 31, nth * 32)
end

-- ARGV[5]: the digests of what is attached, one after the other; then each content. A version that was kept before
-- stays as it was: then it may hold all of it itself.
local function keep_template()
  local version, digests = ARGV[2], ARGV[5]
  if call('HSETNX', root .. 'templates', version, ARGV[3]) == 1 and digests ~= '' then
    call('HSET', root .. 'templatefiles', version, digests)
  end
  call('ZADD', root .. 'templateages', 'GT', ARGV[4], version)
  if digests == '' or call('HGET', root .. 'templatefiles', version) ~= digests then return 1 end
  for nth = 1, #digests / 32 do
    local content = content_of(digests, nth)
    if call('HEXISTS', content, 'content') == 0 then call('HSET', content, 'content', ARGV[5 + nth]) end
    call('HSET', content, version, '')
  end
  return 1
end

-- The files, then digest and content of what is attached.
local function template()
  local files = call('HGET', root .. 'templates', ARGV[2])
  if not files then return false end
  local found, digests = { files }, call('HGET', root .. 'templatefiles', ARGV[2]) or ''
  for nth = 1, #digests / 32 do
    local content = call('HGET', content_of(digests, nth), 'content')
    if content then
      found[#found + 1] = string.sub(digests, nth * 32 - 31, nth * 32)
      found[#found + 1] = content
    end
  end
  return found
end

local function drop_template(version)
  local digests = call('HGET', root .. 'templatefiles', version) or ''
  for nth = 1, #digests / 32 do
    local content = content_of(digests, nth)
    call('HDEL', content, version)
    if call('HLEN', content) <= 1 then call('UNLINK', content) end
  end
  call('HDEL', root .. 'templatefiles', version)
  call('HDEL', root .. 'templates', version)
  call('ZREM', root .. 'templateages', version)
end

-- ARGV[2]: kept by then; ARGV[3]: most; then what this node still has in use, at ARGV[4].
local function purge_templates()
  for i = 5, #ARGV do call('ZADD', root .. 'templateages', 'XX', 'GT', ARGV[4], ARGV[i]) end
  for _, version in ipairs(call('ZRANGEBYSCORE', root .. 'templateages', '-inf', ARGV[2], 'LIMIT', 0, ARGV[3])) do
    drop_template(version)
  end
  return 1
end

-- Whoever comes first says since when; after what was released last, which no shard takes again.
local function put_hold()
  local freed = tonumber(call('HGET', KEYS[1], 'freed') or '-1')
  call('HSETNX', KEYS[1], 'hold', string.format('%d', math.max(tonumber(ARGV[2]), freed + 1)))
  return call('HGET', KEYS[1], 'hold')
end

local function hold()
  return call('HGET', KEYS[1], 'hold')
end

local function drop_hold()
  if call('HGET', KEYS[1], 'hold') == ARGV[2] then
    call('HDEL', KEYS[1], 'hold')
    call('HSET', KEYS[1], 'freed', ARGV[2])
  end
  return 1
end

-- Pauses, by id: until when and since when in 15 digits each, then what only Belfry reads. ARGV[2]: id; ARGV[3]: until;
-- ARGV[4]: since; ARGV[5]: the rest; ARGV[6]: most of them. Answers whether it stood and since when, or nothing where
-- there is no room.
local function put_pause()
  local pauses, since = root .. 'pauses', ARGV[4]
  local before = call('HGET', pauses, ARGV[2])
  if not before and call('HLEN', pauses) >= tonumber(ARGV[6]) then return '' end
  local stood = before and string.sub(before, 1, 15) > since
  if stood then since = string.sub(before, 16, 30) end
  call('HSET', pauses, ARGV[2], ARGV[3] .. since .. ARGV[5])
  return (stood and '1' or '0') .. since
end

local function drop_pause()
  local value = call('HGET', root .. 'pauses', ARGV[2])
  if value then call('HDEL', root .. 'pauses', ARGV[2]) end
  return value
end

local function pauses()
  return call('HVALS', root .. 'pauses')
end

-- Those that are over at ARGV[2], in 15 digits.
local function drop_over()
  local all, over = call('HGETALL', root .. 'pauses'), {}
  for at = 1, #all, 2 do
    if string.sub(all[at + 1], 1, 15) <= ARGV[2] then
      call('HDEL', root .. 'pauses', all[at])
      over[#over + 1] = all[at + 1]
    end
  end
  return over
end

local verbs = {
  secret = secret,
  layout = layout,
  fixed = fixed,
  stand = stand,
  create_key = create_key,
  key_by_hash = key_by_hash,
  key_by_id = key_by_id,
  list_keys = list_keys,
  put_key = put_key,
  keep_template = keep_template,
  template = template,
  purge_templates = purge_templates,
  put_hold = put_hold,
  hold = hold,
  drop_hold = drop_hold,
  put_pause = put_pause,
  drop_pause = drop_pause,
  pauses = pauses,
  drop_over = drop_over,
}
return { verbs[verb]() }
