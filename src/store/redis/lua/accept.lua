-- Keeps new notifications, and finds those that are known. KEYS[2..]: the notifications.
-- ARGV[6..]: per item a position that is newer than all before of this node, its id, its value after
-- the ordinal, how many deliveries, then each one's id and value after the position.
-- Per item: 1 (created), a tombstone's value, or the record with its deliveries.
local position = tonumber(stood[4] or '0')
local ordinal = tonumber(stood[5] or '0')
local first = ordinal
local buckets = tombs()
local answers, live = {}, {}
local at = 6

local function create(key, given, nid, rest, deliveries, from)
  position = math.max(position + 1, given)
  local n_raw = pack('>I7I5', position, ordinal) .. rest
  local n = notification(n_raw)
  call('SET', key, n_raw)
  for _, entry in ipairs(entries(n, n_raw)) do index_entry('ZADD', n, entry[1], entry[2], nid) end
  local _, owner = take('>c1I6', n_raw, N_SIZE + 1)
  index_state('ZADD', n, owner, n.state, nid)
  ages(n, nid)
  local epoch = floor(ordinal / EPOCH)
  if ordinal % EPOCH == 0 then call('ZADD', root .. 'epochs', int(position), int(epoch)) end
  live[epoch] = (live[epoch] or 0) + 1
  ordinal = ordinal + 1
  for i = 0, deliveries - 1 do
    local id, raw = ARGV[from + i * 2], pack('>I7', position) .. ARGV[from + i * 2 + 1]
    local d = delivery(raw)
    call('SET', root .. 'd' .. id, raw)
    if d.state <= DEFERRED_OR_WAITING then enqueue(d, id) end
    count_state(d, 1)
  end
  return 1
end

local function known(key, raw, rest)
  local n = notification(raw)
  -- The same key with another request is a mistake of the caller's, not a repeat.
  if sub(raw, N_SIZE - 31, N_SIZE) == sub(rest, N_SIZE - 43, N_SIZE - 12) then
    local repeats = pack('>I4', math.min(n.repeats + 1, 4294967295))
    call('SETRANGE', key, 21, repeats)
    raw = sub(raw, 1, 21) .. repeats .. sub(raw, 26)
  end
  local answer = { raw }
  for place = 1, n.count do answer[place + 1] = call('GET', root .. 'd' .. delivery_id(n, raw, place)) end
  return answer
end

for item = 2, #KEYS do
  local given, nid, rest, deliveries = tonumber(ARGV[at]), ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
  local raw = call('GET', KEYS[item])
  if raw then
    answers[item - 1] = known(KEYS[item], raw, rest)
  else
    answers[item - 1] = call('HGET', tomb_of(nid, buckets), nid)
      or create(KEYS[item], given, nid, rest, deliveries, at + 4)
  end
  at = at + 4 + deliveries * 2
end
local more = {}
if ordinal > first then
  more = { root .. 'pos', int(position), root .. 'ord', int(ordinal) }
  for epoch, by in pairs(live) do call('HINCRBY', root .. 'live', int(epoch), int(by)) end
end
return { finish(more), position, answers }
