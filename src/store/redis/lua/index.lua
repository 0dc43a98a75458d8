-- What several verbs write beside a record: queues, leases, counters. Collected while the items are
-- gone through, written once at the end.
local queued, unqueued, leased, released, counted, woken = {}, {}, {}, {}, {}, false

local function count(name, by)
  counted[name] = (counted[name] or 0) + by
end

local function count_state(d, by)
  if d.state <= WAITING then
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
  local list, n = {}, 0
  for name in pairs(map) do
    n = n + 1
    list[n] = name
  end
  return list
end

local function scored(map)
  local list, n = {}, 0
  for name, score in pairs(map) do
    list[n + 1], list[n + 2], n = int(score), name, n + 2
  end
  return list
end

-- A tenant stands in its lane's ring at the moment its longest due is due. What comes in can only bring
-- that forward; what goes out may put it off.
local function turn_of(key, queue, added)
  if added then
    local soonest
    for _, due in pairs(queue.members) do
      if not soonest or due < soonest then soonest = due end
    end
    local sooner = soonest and call('ZADD', queue.ring, 'LT', 'CH', int(soonest), queue.tenant) == 1
    -- Where a tenant's longest due is held, what comes after it brings nothing forward there.
    if sooner or (soonest and hold) then woken = true end
    return
  end
  local head = call('ZRANGE', root .. 'q:' .. key, 0, 0, 'WITHSCORES')
  if head[1] then
    call('ZADD', queue.ring, head[2], queue.tenant)
  else
    call('ZREM', queue.ring, queue.tenant)
  end
end

-- Writes everything, raises the sequence and returns it; `more` are further small keys to set. Wakes
-- workers where something may be due sooner than they know.
local function finish(more)
  for key, queue in pairs(unqueued) do
    variadic('ZREM', root .. 'q:' .. key, names(queue.members))
    turn_of(key, queue)
  end
  for key, queue in pairs(queued) do
    variadic('ZADD', root .. 'q:' .. key, scored(queue.members))
    turn_of(key, queue, true)
  end
  variadic('ZREM', root .. 'leases', names(released))
  variadic('ZADD', root .. 'leases', scored(leased))
  for name, by in pairs(counted) do
    if by ~= 0 then call('HINCRBY', root .. 'counts', name, int(by)) end
  end
  if woken then call('PUBLISH', ARGV[4], ARGV[5]) end
  local set = more or {}
  set[#set + 1], set[#set + 2] = KEYS[1], int(seq + 1)
  call('MSET', unpack(set))
  return seq + 1
end
