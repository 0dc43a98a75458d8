-- What recipients want: one text each, which only Belfry reads. ARGV[1]: which verb.
local call = redis.call

-- KEYS: recipient. ARGV[2]: as it was read, ARGV[3]: as it is to be; nothing stands for none. Answers 1 where it is so
-- now, 0 where another has written it.
local function write()
  local now = call('GET', KEYS[1]) or ''
  if now == ARGV[3] then return 1 end
  if now ~= ARGV[2] then return 0 end
  if ARGV[3] == '' then call('DEL', KEYS[1]) else call('SET', KEYS[1], ARGV[3]) end
  return 1
end

-- KEYS: recipients. Answers the text of each.
local function find()
  local found = {}
  for at, key in ipairs(KEYS) do found[at] = call('GET', key) or '' end
  return found
end

local verbs = { write = write, find = find }
return { verbs[ARGV[1]]() }
