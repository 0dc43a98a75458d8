-- Places in the ledgers of caps: for each call in all of its ledgers, or in none. KEYS: the ledgers, those of one
-- call after those of another. ARGV[1]: the time or -1; then for each call: how many ledgers it has, its
-- reservation, the longest that it lasts, and for each of its ledgers limit and window. Answers the time, then for
-- each call 1, or which of its ledgers is full, until when, and when the first call under way that may make room
-- has ended. The same as `Ledger::take` in the domain, which says why.
local call, format = redis.call, string.format
local now = tonumber(ARGV[1])
if now < 0 then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
-- Of the places that count no more, so many go with each that is taken.
local DROPPED = 128

-- It goes by itself, once nothing in it counts as it stands now: ends that are told earlier do not hasten that.
local function keep(key, card, latest, window)
  local left = format('%.0f', latest + window - now)
  -- One that has just been made has no end yet, which GT takes for the latest of all.
  if card == 1 then call('PEXPIRE', key, left) else call('PEXPIRE', key, left, 'GT') end
end

-- Nothing, or until when there is no room, and until when a call under way may make some.
local function take(key, mine, limit, window, ends_by)
  local score = format('%.0f', ends_by)
  -- Its place first, to be given back where there is no room: nearly always there is.
  local new = call('ZADD', key, 'NX', score, mine) == 1
  local card = call('ZCARD', key)
  if new and card <= limit then return keep(key, card, ends_by, window) end
  if not new then
    local counts = tonumber(call('ZSCORE', key, mine)) > now - window
    call('ZADD', key, 'GT', score, mine)
    -- The same call asks again: it has its place.
    if counts then return keep(key, card, ends_by, window) end
  end
  local counting = call('ZCOUNT', key, '(' .. format('%.0f', now - window), '+inf')
  local gone = card - counting
  if gone > 0 then call('ZREMRANGEBYRANK', key, 0, math.min(gone, DROPPED) - 1) end
  if counting <= limit then return keep(key, card, ends_by, window) end
  call('ZREM', key, mine)
  local nth = call('ZREVRANGE', key, limit - 1, limit - 1, 'WITHSCORES')
  local now_on = '(' .. format('%.0f', now)
  local open = ''
  if counting - 1 - call('ZCOUNT', key, now_on, '+inf') < limit then
    open = call('ZRANGEBYSCORE', key, now_on, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  end
  return format('%.0f', nth[2] + window), open
end

local answers, key, at = { format('%.0f', now) }, 1, 2
while at <= #ARGV do
  local ledgers, mine, ends_by = tonumber(ARGV[at]), ARGV[at + 1], now + ARGV[at + 2]
  local answer = 1
  for one = 0, ledgers - 1 do
    local room = at + 3 + 2 * one
    local until_, open = take(KEYS[key + one], mine, tonumber(ARGV[room]), tonumber(ARGV[room + 1]), ends_by)
    if until_ then
      for before = 0, one - 1 do call('ZREM', KEYS[key + before], mine) end
      answer = { one, until_, open }
      break
    end
  end
  answers[#answers + 1] = answer
  key, at = key + ledgers, at + 3 + 2 * ledgers
end
return answers
