-- The three ages. ARGV[6]: now; ARGV[7]: records that ended by then; ARGV[8..10]: most contents, records,
-- tombstones. Answers how many of each went.
local at, ended_by = tonumber(ARGV[6]), tonumber(ARGV[7])
local contents, records, tombstones = 0, 0, 0
local MOST_SWEPT, FULL = 64, 56

local function aged(name, by, most)
  return call('ZRANGEBYSCORE', root .. name, '-inf', by, 'LIMIT', 0, most)
end

local buckets = tombs()
local kept = tonumber(call('HGET', root .. 'tombs', 'count') or '0')

-- One bucket more: half of what is in its twin moves over.
local function split()
  local half = 1
  while half * 2 <= buckets do half = half * 2 end
  local from = root .. 'z' .. (buckets - half)
  buckets = buckets + 1
  local all, stay, move = call('HGETALL', from), {}, {}
  for i = 1, #all, 2 do
    local list = tomb_of(all[i], buckets) == from and stay or move
    list[#list + 1] = all[i]
    list[#list + 1] = all[i + 1]
  end
  call('DEL', from)
  variadic('HSET', from, stay)
  variadic('HSET', root .. 'z' .. (buckets - 1), move)
end

local function bury(nid)
  local key = root .. 'n' .. nid
  local raw = call('GET', key)
  local n = notification(raw)
  if n.remembered > at then
    call('HSET', tomb_of(nid, buckets), nid, sub(n.print, 1, 16) .. pack('>BI6', n.state, n.remembered))
    kept = kept + 1
    if kept > buckets * FULL then split() end
  end
  local list = entries(n, raw)
  for _, entry in ipairs(list) do index_entry('ZREM', n, entry[1], entry[2], nid) end
  index_state('ZREM', n, list[1][2], n.state, nid)
  forget_ages(nid)
  local epoch = floor(n.ordinal / EPOCH)
  if call('HINCRBY', root .. 'live', epoch, -1) <= 0 and floor(tonumber(stood[5]) / EPOCH) ~= epoch then
    call('HDEL', root .. 'live', epoch)
    call('ZREM', root .. 'epochs', epoch)
  end
  for place = 1, n.count do
    local id = delivery_id(n, raw, place)
    local d = front(root .. 'd' .. id)
    count_state(d, -1)
    if d.state == UNKNOWN then call('ZREM', root .. 'unknown', id) end
    if has(d.flags, RECEIPT) then call('ZREM', root .. 'receipts', id) end
    call('DEL', root .. 'd' .. id)
  end
  call('DEL', key)
end

for _, nid in ipairs(aged('contents', at, tonumber(ARGV[8]))) do
  local key = root .. 'n' .. nid
  local raw = call('GET', key)
  local n = notification(raw)
  call('SET', key, sub(raw, 1, 42) .. pack('>I4', 0) .. sub(raw, 47, #raw - n.inputs))
  call('ZREM', root .. 'contents', nid)
  contents = contents + 1
end
-- Failed and parked ones whose window has closed are records like any other from now on.
for _, nid in ipairs(aged('holds', at, tonumber(ARGV[9]))) do
  call('ZREM', root .. 'holds', nid)
  call('ZADD', root .. 'ends', int(take('>I6', call('GETRANGE', root .. 'n' .. nid, 14, 19))), nid)
end
for _, nid in ipairs(aged('ends', ended_by, tonumber(ARGV[9]))) do
  bury(nid)
  records = records + 1
end
-- Tombstones by going round: each call looks into some buckets.
local most, from = tonumber(ARGV[10]), tonumber(call('HGET', root .. 'tombs', 'next') or '0')
local swept = 0
while kept > 0 and swept < math.min(buckets, MOST_SWEPT) and tombstones < most do
  local bucket = root .. 'z' .. (from % buckets)
  local all, gone = call('HGETALL', bucket), {}
  for i = 1, #all, 2 do
    local _, _, until_ = take('>c16BI6', all[i + 1])
    if until_ <= at and tombstones < most then
      gone[#gone + 1] = all[i]
      tombstones = tombstones + 1
    end
  end
  variadic('HDEL', bucket, gone)
  kept = kept - #gone
  from = (from + 1) % buckets
  swept = swept + 1
end
local more = {}
if records > 0 or swept > 0 then
  call('HSET', root .. 'tombs', 'count', int(kept), 'next', int(from))
  more = { root .. 'buckets', int(buckets) }
end
-- Collapse groups that no remembered intent is in.
for _, group in ipairs(aged('grouped', at, tonumber(ARGV[9]))) do
  call('HDEL', root .. 'groups', group)
  call('ZREM', root .. 'grouped', group)
end
return { finish(more), contents, records, tombstones }
