-- Ids of one index entry, newest first. ARGV[6]: kind; ARGV[7]: hash; ARGV[8]: only before this position;
-- ARGV[9]: most. Answers ids with positions, and from where to go on (nothing: that was all). Looks into
-- a bounded number of buckets.
local kind, hash, before, most = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local MOST_BUCKETS = 1024
local found, next_, looked = {}, false, 0

-- Returns false where there is no room for more.
local function look(key)
  looked = looked + 1
  local members = call('ZRANGEBYSCORE', key, hash, hash)
  for i = #members, 1, -1 do
    local pos = take('>I7', members[i])
    if pos < before and sub(members[i], 8, 8) == kind then
      if #found >= most then return false end
      found[#found + 1] = { sub(members[i], 9), pos }
      next_ = pos
    end
  end
  return true
end

local function look_into(epoch, start)
  if kind ~= 'o' then return look(root .. 'x' .. epoch .. ':' .. hash % BUCKETS) end
  for chunk = BUCKETS - 1, 0, -1 do
    local bucket = (hash + epoch * (EPOCH / CHUNK) + chunk) % BUCKETS
    if not look(root .. 'x' .. epoch .. ':' .. bucket) then return false end
  end
  return true
end

local epochs = call('ZREVRANGEBYSCORE', root .. 'epochs', '(' .. ARGV[8], '-inf', 'WITHSCORES', 'LIMIT', 0, 256)
local whole = #epochs < 512
for i = 1, #epochs, 2 do
  if not look_into(tonumber(epochs[i]), tonumber(epochs[i + 1])) then
    return { seq, found, next_ }
  end
  if looked >= MOST_BUCKETS then
    whole = whole and i + 2 > #epochs
    if not whole then return { seq, found, tonumber(epochs[i + 1]) } end
  end
end
if whole then return { seq, found, false } end
return { seq, found, tonumber(epochs[#epochs]) }
