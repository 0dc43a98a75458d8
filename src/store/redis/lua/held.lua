-- The claims that are out, those that lapse first first. ARGV[6]: most. Answers id, value up to the body.
local now = clock()
local answers = {}
for _, id in ipairs(call('ZRANGE', root .. 'leases', 0, tonumber(ARGV[6]) - 1)) do
  answers[#answers + 1] = { id, call('GETRANGE', root .. 'd' .. id, 0, D_SIZE - 1) }
end
return { seq, now, answers }
