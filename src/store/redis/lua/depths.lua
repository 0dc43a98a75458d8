-- Counters of lanes and states, how much is due, and the oldest of each. Counts at most so many tenants.
local now = clock()
local MOST_TENANTS = 1000
local lanes, counts = {}, call('HGETALL', root .. 'counts')
local unknown, parked = 0, 0

local function lane_of(name)
  lanes[name] = lanes[name] or { 0, 0 }
  return lanes[name]
end

for i = 1, #counts, 2 do
  local name, value = counts[i], tonumber(counts[i + 1])
  if name == 'unknown' then
    unknown = value
  elseif name == 'parked' then
    parked = value
  else
    lane_of(sub(name, 2))[sub(name, 1, 1) == 'w' and 1 or 2] = value
  end
end
local held, by = 0, math.max(now, tonumber(hold or 0))
local answer = {}
for name, lane in pairs(lanes) do
  local due, oldest = 0, nil
  for _, side in ipairs({ 'n', 'a' }) do
    local ring = call('ZRANGEBYSCORE', root .. 't:' .. side .. name, '-inf', int(by), 'WITHSCORES', 'LIMIT', 0, MOST_TENANTS)
    for i = 1, #ring, 2 do
      local queue = root .. 'q:' .. side .. name .. ':' .. ring[i]
      local score = tonumber(ring[i + 1])
      if hold then
        held = held + call('ZCOUNT', queue, '-inf', hold)
        score = tonumber(call('ZRANGEBYSCORE', queue, beyond, int(now), 'WITHSCORES', 'LIMIT', 0, 1)[2] or '')
      end
      due = due + call('ZCOUNT', queue, beyond, int(now))
      if score and (not oldest or score < oldest) then oldest = score end
    end
  end
  answer[#answer + 1] = { name, lane[1], lane[2], due, oldest or '' }
end
return { seq, unknown, parked, call('ZRANGE', root .. 'unknown', 0, 0, 'WITHSCORES')[2] or '', answer, hold or '', held }
