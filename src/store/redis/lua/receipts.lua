-- Accepted deliveries whose receipt window has closed. ARGV[5]: by when; ARGV[6]: most.
local answers = {}
for _, id in ipairs(call('ZRANGEBYSCORE', root .. 'receipts', '-inf', ARGV[5], 'LIMIT', 0, ARGV[6])) do
  answers[#answers + 1] = call('GET', root .. 'd' .. id)
end
return { seq, answers }
