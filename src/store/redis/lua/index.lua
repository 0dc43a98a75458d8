-- What several verbs write beside a record: queues, leases, counters, lists by age. Collected while the
-- items are gone through, written once at the end.
local queued, unqueued, leased, released, counted, listed, woken = {}, {}, {}, {}, {}, {}, false

local function count(name, by)
  counted[name] = (counted[name] or 0) + by
end

local function count_state(state, lane, by)
  if state == SENDING then
    count('s' .. lane, by)
  elseif state <= WAITING then
    count('w' .. lane, by)
  elseif state == UNKNOWN then
    count('unknown', by)
  elseif state == PARKED then
    count('parked', by)
  end
end

-- Of a lane, those that have to be claimed alone stand apart.
local function side_of(flags)
  return flags % 2 == 1 and 'a' or 'n'
end

-- In the order of acceptance where two are due at one moment.
local function place(raw, id)
  return sub(raw, 1, 8) .. id
end

-- `lane` has its side in front.
local function queue_of(map, lane, tenant)
  local key = lane .. ':' .. tenant
  local queue = map[key]
  if not queue then
    queue = { ring = root .. 't:' .. lane, tenant = tenant, members = {} }
    map[key] = queue
  end
  return queue
end

local function enqueue(lane, tenant, member, due)
  queue_of(queued, lane, tenant).members[member] = due
end

local function dequeue(raw, id)
  local lane, tenant = side_of(byte(raw, 25)) .. lane_of(raw), sub(raw, D_SIZE + 1, D_SIZE + byte(raw, 21))
  local member = place(raw, id)
  queue_of(queued, lane, tenant).members[member] = nil
  queue_of(unqueued, lane, tenant).members[member] = true
end

local function lease(id, until_)
  leased[id] = until_
  released[id] = nil
end

local function release(id)
  released[id] = true
  leased[id] = nil
end

-- To the end of a list.
local function append(name, value)
  local list = listed[name]
  if not list then
    list = {}
    listed[name] = list
  end
  list[#list + 1] = value
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

-- A tenant stands in its lane's ring at the moment its longest due is due. What goes out may put that off.
local function turn_again(key, ring, tenant)
  local head = call('ZRANGE', root .. 'q:' .. key, 0, 0, 'WITHSCORES')
  if head[1] then
    call('ZADD', ring, head[2], tenant)
  else
    call('ZREM', ring, tenant)
  end
end

-- What comes in can only bring it forward.
local function turn_sooner(queue)
  local soonest
  for _, due in pairs(queue.members) do
    if not soonest or due < soonest then soonest = due end
  end
  local sooner = soonest and call('ZADD', queue.ring, 'LT', 'CH', int(soonest), queue.tenant) == 1
  -- Where a tenant's longest due is held, what comes after it brings nothing forward there.
  if sooner or (soonest and hold) then woken = true end
end

-- Writes everything, raises the sequence and returns it; `more` are further small keys to set. Wakes
-- workers where something may be due sooner than they know.
local function finish(more)
  for key, queue in pairs(unqueued) do
    variadic('ZREM', root .. 'q:' .. key, names(queue.members))
    turn_again(key, queue.ring, queue.tenant)
  end
  for key, queue in pairs(queued) do
    variadic('ZADD', root .. 'q:' .. key, scored(queue.members))
    turn_sooner(queue)
  end
  variadic('ZREM', root .. 'leases', names(released))
  variadic('ZADD', root .. 'leases', scored(leased))
  for name, by in pairs(counted) do
    if by ~= 0 then call('HINCRBY', root .. 'counts', name, int(by)) end
  end
  for name, list in pairs(listed) do
    variadic('RPUSH', root .. name, list)
    -- Which lists of contents there are.
    if sub(name, 1, 1) == 'c' then call('SADD', root .. 'keeps', sub(name, 2)) end
  end
  if woken then call('PUBLISH', ARGV[4], ARGV[5]) end
  local set = more or {}
  set[#set + 1], set[#set + 2] = KEYS[1], int(seq + 1)
  call('MSET', unpack(set))
  return seq + 1
end
