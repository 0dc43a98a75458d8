-- What several verbs write beside a record: queues, leases, counters. Collected while the items are
-- gone through, written once at the end.
local queued, unqueued, leased, released, counted, woken = {}, {}, {}, {}, {}, false

local function count(name, by)
  counted[name] = (counted[name] or 0) + by
end

local function count_state(d, by)
  if d.state <= DEFERRED_OR_WAITING then
    count('w' .. d.lane, by)
  elseif d.state == SENDING then
    count('s' .. d.lane, by)
  elseif d.state == UNKNOWN then
    count('unknown', by)
  elseif d.state == PARKED then
    count('parked', by)
  end
end

local function part(d)
  return has(d.flags, ALONE) and 'a' or 'n'
end

-- In the order of acceptance where two are due at one moment.
local function place(d, id)
  return pack('>I7B', d.pos, d.slot) .. id
end

local function queue_of(map, d)
  local key = part(d) .. d.lane .. ':' .. d.tenant
  local queue = map[key]
  if not queue then
    queue = { ring = root .. 't:' .. part(d) .. d.lane, tenant = d.tenant, members = {} }
    map[key] = queue
  end
  return queue
end

local function enqueue(d, id)
  queue_of(queued, d).members[place(d, id)] = d.due
end

local function dequeue(d, id)
  local member = place(d, id)
  queue_of(queued, d).members[member] = nil
  queue_of(unqueued, d).members[member] = true
end

local function lease(id, until_)
  leased[id] = until_
  released[id] = nil
end

local function release(id)
  released[id] = true
  leased[id] = nil
end

-- Few enough at a time for Lua's stack.
local function variadic(command, key, list)
  for i = 1, #list, 1000 do
    call(command, key, unpack(list, i, math.min(i + 999, #list)))
  end
end

local function names(map)
  local list = {}
  for name in pairs(map) do list[#list + 1] = name end
  return list
end

local function scored(map)
  local list = {}
  for name, score in pairs(map) do
    list[#list + 1] = score
    list[#list + 1] = name
  end
  return list
end

-- A tenant stands in its lane's ring at the moment its longest due is due.
local function turn_of(key, queue)
  local head = call('ZRANGE', root .. 'q:' .. key, 0, 0, 'WITHSCORES')
  if not head[1] then
    call('ZREM', queue.ring, queue.tenant)
    return
  end
  local before = call('ZSCORE', queue.ring, queue.tenant)
  if before ~= head[2] then call('ZADD', queue.ring, head[2], queue.tenant) end
  if not before or tonumber(before) > tonumber(head[2]) then woken = true end
end

-- Writes everything, raises the sequence and returns it. Wakes workers where something may be due
-- sooner than they know.
local function finish()
  local touched = {}
  for key, queue in pairs(unqueued) do
    touched[key] = queue
    variadic('ZREM', root .. 'q:' .. key, names(queue.members))
  end
  for key, queue in pairs(queued) do
    touched[key] = queue
    variadic('ZADD', root .. 'q:' .. key, scored(queue.members))
  end
  for key, queue in pairs(touched) do turn_of(key, queue) end
  variadic('ZREM', root .. 'leases', names(released))
  variadic('ZADD', root .. 'leases', scored(leased))
  for name, by in pairs(counted) do
    if by ~= 0 then call('HINCRBY', root .. 'counts', name, by) end
  end
  if woken then call('PUBLISH', ARGV[3], ARGV[4]) end
  return call('INCR', KEYS[1])
end
