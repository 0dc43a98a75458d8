-- Records that a call is about to be made. KEYS[2..]: the deliveries; ARGV[6..]: per item its token, its
-- rev and the one after (six bytes each). Per item: 1 done, 2 stale, 3 gone, or the delivery that it has
-- moved on to.
local answers = {}
for item = 2, #KEYS do
  local key, at = KEYS[item], 6 + (item - 2) * 3
  local raw = front(key)
  local answer = 1
  if not raw then
    answer = 3
  elseif not held_by(raw, ARGV[at]) then
    answer = 2
  else
    local rev, flags = sub(raw, 32, 37), byte(raw, 25)
    local spent = has(flags, SPENT)
    if rev == ARGV[at + 1] then
      call('SETRANGE', key, 24, char(spent and flags or flags + SPENT) .. sub(raw, 26, 31) .. ARGV[at + 2])
    elseif not (spent and rev == ARGV[at + 2]) then
      -- Not the same spend again, whose reply was lost.
      answer = call('GET', key)
    end
  end
  answers[item - 1] = answer
end
return { finish(), answers }
