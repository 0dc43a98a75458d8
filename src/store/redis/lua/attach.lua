-- Inputs that begin with this mark name what is attached to them: how many, then a digest of 32 bytes each, under which
-- the content stands once for all records of the shard that name it: a hash of the content and of their ids.
local ATTACHED, DIGEST = 2, 32

-- How many there are, and where the first digest stands. `inputs`: how long they are, at the end of `raw`.
local function attached(raw, inputs)
  local from = #raw - inputs + 1
  if byte(raw, from) ~= ATTACHED then return 0 end
  return byte(raw, from + 1), from + 2
end

local function content_of(raw, first, nth)
  local from = first + (nth - 1) * DIGEST
  return root .. 'att' .. sub(raw, from, from + DIGEST - 1)
end
