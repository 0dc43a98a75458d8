-- The hold that stands.
return { seq, hold or '' }
