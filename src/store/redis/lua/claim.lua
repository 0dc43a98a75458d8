-- Claims what is due. ARGV[6..]: whether the same nonce was asked before, worker (24 bytes), nonce, 'a' or
-- 'n' (alone or not), how many, how many bytes, since when it has to be due by the node's clock (which is what
-- due times are set by: a server whose clock is wrong neither holds up nor hurries anything), then per lane:
-- name, most, its provider, most of that provider.
-- Answers claims (id, fence, delivery as it was, record), and per lane when its longest due is due.
local again, worker, nonce, side = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local now = clock()
local room, bytes, late = tonumber(ARGV[10]), tonumber(ARGV[11]), ARGV[12]
local MOST_TENANTS = 256
local lowest = tonumber(stood[3] or '0')
local claims, heads, of_provider = {}, {}, {}

local function give(id, raw, fence)
  local n = call('GET', root .. 'n' .. notification_of(raw)) or ''
  bytes = bytes - #raw - #n
  claims[#claims + 1] = { id, fence, raw, n }
end

-- The answer to the same call again, where anything of it still holds. The lease starts anew: the
-- worker counts it from before it asked this time.
local function claim_again()
  local found = {}
  for _, id in ipairs(call('ZRANGE', root .. 'leases', 0, -1)) do
    local raw = front(root .. 'd' .. id)
    if raw and byte(raw, 24) == SENDING and sub(raw, 44, 51) == nonce and sub(raw, 58, 81) == worker then
      found[#found + 1] = { place(raw, id), id, raw }
    end
  end
  table.sort(found, function(one, other) return one[1] < other[1] end)
  for _, one in ipairs(found) do
    local id, raw = one[2], one[3]
    local lapse = now + six(raw, 82)
    if lapse == six(raw, 52) then lapse = lapse + 1 end
    call('SETRANGE', root .. 'd' .. id, 51, pack('>I6', lapse))
    lease(id, lapse)
    give(id, call('GET', root .. 'd' .. id), six(raw, 38))
  end
  return #found > 0
end

-- Returns 1, or 0 where the delivery is gone (somebody deletes keys, or evicts them): its place in the queue
-- goes with what was taken, or it would stop all that stands behind it.
local function take_one(member)
  local id = sub(member, 9)
  local key = root .. 'd' .. id
  local raw = call('GET', key)
  if not raw or #raw < D_SIZE then return 0 end
  local flags, rev, fence = byte(raw, 25), six(raw, 32) + 1, math.max(six(raw, 38), lowest) + 1
  if has(flags, HELD_ALONE) then flags = flags - HELD_ALONE end
  if side == 'a' then flags = flags + HELD_ALONE end
  local lapse = now + six(raw, 82)
  call('SETRANGE', key, 23,
    char(SENDING, flags) .. sub(raw, 26, 31) .. pack('>I6I6c8I6', rev, fence, nonce, lapse) .. worker)
  lease(id, lapse)
  give(id, raw, fence)
  return 1
end

-- While there is a hold: the tenants of whom something is held and something else is due, when the first
-- of what is not held is due, and whether these were all. Looks at a bounded number, in turn.
local function beside_held(ring, lane)
  local all, start = call('ZCOUNT', ring, '-inf', hold), 0
  if all > MOST_TENANTS then
    start = tonumber(call('HGET', root .. 'turns', '!' .. lane) or '0')
    if start >= all then start = 0 end
  end
  local found, soonest = {}, math.huge
  for _, tenant in ipairs(call('ZRANGEBYSCORE', ring, '-inf', hold, 'LIMIT', start, MOST_TENANTS)) do
    local queue = root .. 'q:' .. side .. lane .. ':' .. tenant
    local head = tonumber(call('ZRANGEBYSCORE', queue, beyond, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or '')
    if head and head <= tonumber(late) then found[#found + 1] = tenant end
    soonest = math.min(soonest, head or soonest)
  end
  return found, soonest, all > MOST_TENANTS and start + MOST_TENANTS
end

-- Tenants with something due, from the one after whose turn was last; at most `most`.
local function tenants_due(ring, lane, most)
  local due = call('ZRANGEBYSCORE', ring, beyond, late, 'LIMIT', 0, MOST_TENANTS)
  if hold then
    local others, _, more = beside_held(ring, lane)
    for _, tenant in ipairs(others) do due[#due + 1] = tenant end
    if more then call('HSET', root .. 'turns', '!' .. lane, int(more)) end
  end
  if #due > 1 then
    table.sort(due)
    local last = call('HGET', root .. 'turns', lane) or ''
    local start = 1
    while due[start] and due[start] <= last do start = start + 1 end
    local turned = {}
    for i = 0, #due - 1 do turned[i + 1] = due[(start + i - 1) % #due + 1] end
    due = turned
  end
  local several = #due > 1
  for i = #due, most + 1, -1 do due[i] = nil end
  return due, several
end

local function head_of(lane)
  local ring = root .. 't:' .. side .. lane
  if not hold then return call('ZRANGE', ring, 0, 0, 'WITHSCORES')[2] end
  local head = call('ZRANGEBYSCORE', ring, beyond, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  local _, soonest, more = beside_held(ring, lane)
  -- Not all were looked at: there may be more, and the next call looks on.
  if more then return late end
  return soonest < (tonumber(head or '') or math.huge) and int(soonest) or head
end

-- Takes from the fronts of the tenants' queues, in turn. Returns how many, whose was last, and how many of
-- them are claimed.
local function take_in_turn(turns, most)
  local taken, last, claimed = 0, nil, 0
  while taken < most and #turns > 0 do
    local share = math.ceil((most - taken) / #turns)
    local more = {}
    for _, turn in ipairs(turns) do
      turn.ready = call('ZRANGEBYSCORE', root .. 'q:' .. turn.key, beyond, late, 'LIMIT', turn.taken, share)
      if #turn.ready == share then more[#more + 1] = turn end
    end
    for at = 1, share do
      for _, turn in ipairs(turns) do
        if turn.ready[at] and taken < most then
          if bytes <= 0 then return taken, last, claimed end
          claimed = claimed + take_one(turn.ready[at])
          turn.taken = turn.taken + 1
          taken, last = taken + 1, turn.tenant
        end
      end
    end
    turns = more
  end
  return taken, last, claimed
end

local function claim_lane(lane, most)
  local ring = root .. 't:' .. side .. lane
  local turns, due, several = {}, tenants_due(ring, lane, most)
  for i, tenant in ipairs(due) do
    turns[i] = { tenant = tenant, key = side .. lane .. ':' .. tenant, taken = 0 }
  end
  local taken, last, claimed = take_in_turn({ unpack(turns) }, most)
  for _, turn in ipairs(turns) do
    -- What was taken stood at the front, or next to what is held.
    if turn.taken > 0 then
      local queue = root .. 'q:' .. turn.key
      local from = hold and call('ZCOUNT', queue, '-inf', hold) or 0
      call('ZREMRANGEBYRANK', queue, from, from + turn.taken - 1)
      turn_again(turn.key, ring, turn.tenant)
    end
  end
  count('w' .. lane, -taken)
  count('s' .. lane, claimed)
  return taken, several and last
end

-- This server was started anew, or has lost something: until whoever is at something here can have said so,
-- nothing is given away.
local MOST_QUIET = 10000
local quiet = tonumber(stood[8] or '0')
-- So far ahead it was never put: the server's clock has stepped back since.
if quiet - now > MOST_QUIET then quiet = 0 end
local repeated = again == '1' and claim_again()
local at, lanes = 13, 0
while ARGV[at] do
  local lane, most, provider, shared = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2], tonumber(ARGV[at + 3])
  local head, used = head_of(lane), of_provider[provider] or 0
  most = math.min(most, shared - used, room)
  if quiet > now then
    most = 0
    if head and tonumber(head) < quiet then head = int(quiet) end
  end
  if not repeated and head and tonumber(head) <= tonumber(late) and most > 0 and bytes > 0 then
    local taken, last = claim_lane(lane, most)
    of_provider[provider] = used + taken
    room = room - taken
    if last then call('HSET', root .. 'turns', lane, last) end
    if taken > 0 then head = false end
  end
  lanes = lanes + 1
  heads[lanes] = head == nil and '' or head
  at = at + 4
end
local sequence = finish()
for i = 1, lanes do
  -- Something was taken: another one is the longest due now.
  if not heads[i] then heads[i] = head_of(ARGV[13 + (i - 1) * 4]) or '' end
end
return { sequence, now, claims, heads }
