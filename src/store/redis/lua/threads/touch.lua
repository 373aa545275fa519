-- Moves a thread's end. Goes before a plain read in one pipeline, whose reply counts only after 1.
-- KEYS: 1 thread. ARGV: 1 ahead. Reply: 1, or 0 when there is no living thread.
if touch(KEYS[1], tonumber(ARGV[1])) then return 1 end
return 0
