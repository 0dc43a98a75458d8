-- What waits and is due by a moment, part of a lane by part, tenant by tenant in the order of their longest due, and within one
-- in the order of the queue. ARGV[6]: most; ARGV[7..]: how far the reading has come: part, the tenant's
-- score, tenant, its queue's score, member; ARGV[12]: that
-- moment, or nothing for what is held. Answers deliveries and how far they go (nothing: all).
local most, bytes = tonumber(ARGV[6]), 262144
local part_from, ring_score, tenant_from, score_from, member_from = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
local found, last = {}, false
local by = ARGV[12] ~= '' and ARGV[12] or hold
if not by then return { seq, found, false } end

local parts = {}
for _, name in ipairs(call('HKEYS', root .. 'counts')) do
  -- Each lane is counted as waiting and as being sent.
  if sub(name, 1, 1) == 'w' then
    parts[#parts + 1] = 'a' .. sub(name, 2)
    parts[#parts + 1] = 'n' .. sub(name, 2)
  end
end
table.sort(parts)

-- Returns false where there is no room for more.
local function read(part, ring_at, tenant, score, member)
  local queue = root .. 'q:' .. part .. ':' .. tenant
  local start = 0
  if member then
    -- After the last one read; where that has gone, from its moment on.
    local rank = call('ZRANK', queue, member)
    start = rank and rank + 1 or call('ZCOUNT', queue, '-inf', '(' .. score)
  end
  local held = call('ZCOUNT', queue, '-inf', by)
  while start < held do
    if #found >= most or bytes <= 0 then return false end
    local one = call('ZRANGE', queue, start, start, 'WITHSCORES')
    local raw = call('GET', root .. 'd' .. sub(one[1], 9))
    if raw then
      found[#found + 1] = raw
      bytes = bytes - #raw
    end
    last = { part, ring_at, tenant, one[2], one[1] }
    start = start + 1
  end
  return true
end

local function read_part(part)
  local ring, start = root .. 't:' .. part, 0
  if part == part_from then
    if not read(part, ring_score, tenant_from, score_from, member_from) then return false end
    -- Where it stands elsewhere by now, or has gone, those of its place are read again: none is missed.
    local same = call('ZSCORE', ring, tenant_from) == ring_score
    start = same and call('ZRANK', ring, tenant_from) + 1 or call('ZCOUNT', ring, '-inf', '(' .. ring_score)
  end
  local tenants = call('ZCOUNT', ring, '-inf', by)
  while start < tenants do
    local one = call('ZRANGE', ring, start, start, 'WITHSCORES')
    if not read(part, one[2], one[1]) then return false end
    start = start + 1
  end
  return true
end

for _, part in ipairs(parts) do
  if part >= part_from and not read_part(part) then return { seq, found, last } end
end
return { seq, found, false }
