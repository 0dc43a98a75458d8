-- Ids of one index entry, newest first. ARGV[6]: the entry; ARGV[7]: only before this position;
-- ARGV[8]: most. Answers ids with positions, and from where to go on (nothing: that was all). Looks into
-- a bounded number of texts.
local entry, before, most = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
local kind, hash = sub(entry, 1, 1), six(entry, 2)
local MOST_TEXTS = 1024
local found, next_, looked = {}, false, 0

-- Returns false where there is no room for more.
local function look(key)
  looked = looked + 1
  local text = call('GET', key)
  local places, from = {}, 1
  while text do
    local at = string.find(text, entry, from, true)
    if not at then break end
    if at % ENTRY == 1 then
      places[#places + 1] = at
      from = at + ENTRY
    else
      from = at + 1
    end
  end
  local pos_of = function(at) return (take('>I7', text, at + 7)) end
  -- What came into a state stands there in the order in which it did.
  if kind == 's' then
    table.sort(places, function(one, other) return pos_of(one) < pos_of(other) end)
  end
  for i = #places, 1, -1 do
    local pos = pos_of(places[i])
    -- What came into a state twice stands there twice.
    if pos < before and pos ~= next_ then
      if #found >= most then return false end
      found[#found + 1] = { sub(text, places[i] + 14, places[i] + 25), pos }
      next_ = pos
    end
  end
  return true
end

local function look_into(epoch)
  if kind ~= 'o' then return look(index_text(epoch * EPOCH, kind, hash)) end
  for chunk = EPOCH / CHUNK - 1, 0, -1 do
    if not look(index_text(epoch * EPOCH + chunk * CHUNK, kind, hash)) then return false end
  end
  return true
end

local epochs = call('ZREVRANGEBYSCORE', root .. 'epochs', '(' .. ARGV[7], '-inf', 'WITHSCORES', 'LIMIT', 0, 256)
local whole = #epochs < 512
for i = 1, #epochs, 2 do
  if not look_into(tonumber(epochs[i])) then
    return { seq, found, next_ }
  end
  if looked >= MOST_TEXTS then
    whole = whole and i + 2 > #epochs
    if not whole then return { seq, found, tonumber(epochs[i + 1]) } end
  end
end
if whole then return { seq, found, false } end
return { seq, found, tonumber(epochs[#epochs]) }
