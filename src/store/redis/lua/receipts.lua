-- Accepted deliveries whose receipt window has closed. ARGV[6]: by when; ARGV[7]: most.
local answers = {}
for _, id in ipairs(call('ZRANGEBYSCORE', root .. 'receipts', '-inf', ARGV[6], 'LIMIT', 0, ARGV[7])) do
  local raw = call('GET', root .. 'd' .. id)
  if raw then answers[#answers + 1] = { id, raw } end
end
return { seq, answers }
