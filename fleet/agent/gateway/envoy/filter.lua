-- What Envoy does with each request of a caller: is the key known, in time, meant for this endpoint, and not held? And with
-- each answer: how many tokens does the engine report? Runs in every worker; what is at file level is that worker's own.
--
-- Keys lie in small files by the first two hex digits of their SHA-256, a line each:
--   digest id expires_ms requests_per_minute is_held endpoints      (0: none; endpoints: * or ,one,two,)
-- They are looked at again once a second, so that a revoked key stops without anybody telling Envoy. No key itself is on the disk.

local KEYS, ENDPOINTS = "@@KEYS@@", "@@ENDPOINTS@@"
local REFRESH_MS, LONGEST_TOKEN, COST_OF_A_MINUTE, CARRIED, NO_SUCH_FILE = 1000, 256, 600000000, 1024, 2
local LARGEST_BODY = @@LARGEST_BODY@@

local bit = require("bit")
local band, bor, bxor, bnot = bit.band, bit.bor, bit.bxor, bit.bnot
local ror, rshift, lshift, tobit, tohex = bit.ror, bit.rshift, bit.lshift, bit.tobit, bit.tohex
local byte, char, floor, ceil = string.byte, string.char, math.floor, math.ceil

-- ---- SHA-256 (FIPS 180-4): the constants are the fractions of the cube and square roots of the first primes

local function first_primes(count)
  local primes, candidate = {}, 2
  while #primes < count do
    local is_prime = true
    for _, prime in ipairs(primes) do
      if candidate % prime == 0 then is_prime = false break end
    end
    if is_prime then primes[#primes + 1] = candidate end
    candidate = candidate + 1
  end
  return primes
end

local function fraction(root) return tobit(floor((root - floor(root)) * 4294967296)) end

local ROUND, START = {}, {}
for index, prime in ipairs(first_primes(64)) do
  ROUND[index - 1] = fraction(prime ^ (1 / 3))
  if index <= 8 then START[index] = fraction(prime ^ 0.5) end
end

local words = {}
for index = 0, 63 do words[index] = 0 end

local function sha256(text)
  local bits = #text * 8
  local padded = text .. "\128" .. string.rep("\0", (55 - #text) % 64)
    .. "\0\0\0\0" .. char(0, band(rshift(bits, 16), 255), band(rshift(bits, 8), 255), band(bits, 255))
  local h1, h2, h3, h4 = START[1], START[2], START[3], START[4]
  local h5, h6, h7, h8 = START[5], START[6], START[7], START[8]
  for block = 1, #padded, 64 do
    for index = 0, 15 do
      local b1, b2, b3, b4 = byte(padded, block + index * 4, block + index * 4 + 3)
      words[index] = bor(lshift(b1, 24), lshift(b2, 16), lshift(b3, 8), b4)
    end
    for index = 16, 63 do
      local x, y = words[index - 15], words[index - 2]
      words[index] = tobit(words[index - 16] + bxor(ror(x, 7), ror(x, 18), rshift(x, 3))
        + words[index - 7] + bxor(ror(y, 17), ror(y, 19), rshift(y, 10)))
    end
    local a, b, c, d, e, f, g, h = h1, h2, h3, h4, h5, h6, h7, h8
    for index = 0, 63 do
      local t1 = h + bxor(ror(e, 6), ror(e, 11), ror(e, 25)) + bxor(band(e, f), band(bnot(e), g)) + ROUND[index] + words[index]
      local t2 = bxor(ror(a, 2), ror(a, 13), ror(a, 22)) + bxor(band(a, b), band(a, c), band(b, c))
      h, g, f, e, d, c, b, a = g, f, e, tobit(d + t1), c, b, a, tobit(t1 + t2)
    end
    h1, h2, h3, h4 = tobit(h1 + a), tobit(h2 + b), tobit(h3 + c), tobit(h4 + d)
    h5, h6, h7, h8 = tobit(h5 + e), tobit(h6 + f), tobit(h7 + g), tobit(h8 + h)
  end
  return tohex(h1) .. tohex(h2) .. tohex(h3) .. tohex(h4) .. tohex(h5) .. tohex(h6) .. tohex(h7) .. tohex(h8)
end

-- ---- the keys

local shards = {}

local function parse(text)
  local rules = {}
  for digest, id, expires_ms, per_minute, held, endpoints in text:gmatch("(%x+) (%d+) (%d+) (%d+) (%d) (%S+)\n") do
    rules[digest] = {
      id = id, expires_ms = tonumber(expires_ms), per_minute = tonumber(per_minute), is_held = held == "1", endpoints = endpoints,
    }
  end
  return rules
end

-- Returns the rules of a file as it is now, nil when it cannot be read and never could.
local function rules_of(name, now)
  local shard = shards[name]
  if shard and now >= shard.read_at and now - shard.read_at < REFRESH_MS then return shard.rules end
  local file, _, problem = io.open(KEYS .. "/" .. name, "r")
  local text
  if file then
    text = file:read("*a")
    file:close()
  elseif problem == NO_SUCH_FILE then
    text = ""
  end
  if text and not (shard and shard.text == text) then
    shard = { text = text, rules = parse(text) }
    shards[name] = shard
  end
  if shard then
    shard.read_at = now
    return shard.rules
  end
end

-- ---- refusals, in the shape that OpenAI's clients read

local function refuse(handle, status, kind, code, message, more)
  handle:streamInfo():dynamicMetadata():set("fleetdeck", "refusal", code)
  local headers = more or {}
  headers[":status"] = status
  handle:respond(headers, string.format(
    '{"error":{"message":"%s","type":"%s","param":null,"code":"%s"}}', message, kind, code))
end

local function unauthorised(handle, code, message)
  refuse(handle, "401", "invalid_request_error", code, message, { ["www-authenticate"] = 'Bearer realm="fleetdeck"' })
end

-- Returns whether the request may go on.
local function admit(handle, endpoint, now)
  local token = (handle:headers():get("authorization") or ""):match("^[Bb][Ee][Aa][Rr][Ee][Rr] +(%S+)$")
  if not token or #token > LONGEST_TOKEN then
    return unauthorised(handle, "missing_api_key", "Send your API key as 'Authorization: Bearer fdk_...'.")
  end
  local digest = sha256(token)
  local rules = rules_of(digest:sub(1, 2), now)
  if not rules then
    return refuse(handle, "503", "server_error", "keys_unreadable", "The gateway cannot read its keys.", { ["retry-after"] = "5" })
  end
  local rule = rules[digest]
  if not rule then return unauthorised(handle, "invalid_api_key", "This API key is unknown or was revoked.") end
  local notes = handle:streamInfo():dynamicMetadata()
  notes:set("fleetdeck", "key", rule.id)
  if rule.expires_ms > 0 and now >= rule.expires_ms then
    return unauthorised(handle, "expired_api_key", "This API key has expired.")
  end
  if rule.endpoints ~= "*" and not rule.endpoints:find("," .. endpoint .. ",", 1, true) then
    return refuse(handle, "403", "invalid_request_error", "key_not_for_endpoint", "This API key may not use this endpoint.")
  end
  if rule.is_held then
    return refuse(handle, "429", "tokens", "tokens_per_minute",
      "This API key is over its tokens per minute.", { ["retry-after"] = "15" })
  end
  if rule.per_minute > 0 then
    notes:set("fleetdeck", "rated", rule.id)
    notes:set("fleetdeck", "cost", floor(COST_OF_A_MINUTE / rule.per_minute))
    notes:set("fleetdeck", "retry_after", tostring(ceil(60 / rule.per_minute)))
  end
  return true
end

-- Notes for the log that a request is a probe of the panel's own. That changes nothing else: keys and limits hold for it.
local function note_probe(handle, headers, mark)
  local shown = headers:get("x-fleetdeck-probe-mark")
  headers:remove("x-fleetdeck-probe-mark")
  if mark and mark ~= "" and shown == mark then
    handle:streamInfo():dynamicMetadata():set("fleetdeck", "probe", "1")
  end
end

function envoy_on_request(handle)
  local route = handle:metadata()
  local endpoint = route:get("endpoint")
  if not endpoint then return end
  local headers = handle:headers()
  note_probe(handle, headers, route:get("probe_mark"))
  if (tonumber(headers:get("content-length") or "0") or 0) > LARGEST_BODY then
    return refuse(handle, "413", "invalid_request_error", "request_too_large", "The request's body is larger than this gateway takes.")
  end
  if route:get("requires_key") and not admit(handle, endpoint, handle:timestamp()) then return end
  -- Replicas run on machines of others: neither a caller's key nor where it comes from is their business.
  for _, name in ipairs({ "authorization", "cookie", "x-api-key", "x-forwarded-for", "x-envoy-external-address" }) do headers:remove(name) end
  headers:remove("accept-encoding") -- so that the tokens that an engine reports can be read
end

-- ---- answers

-- How many requests the ready replicas work on at once, nil when one does not tell.
local function capacity_of(endpoint)
  local file = io.open(ENDPOINTS .. "/" .. endpoint .. "/eds.json", "r")
  if not file then return nil end
  local text = file:read("*a")
  file:close()
  local sum, told = 0, 0
  for slots in text:gmatch('"slots":(%d+)') do sum, told = sum + tonumber(slots), told + 1 end
  local _, replicas = text:gsub('"port_value"', "")
  if told == replicas and told > 0 then return sum end
end

-- Says in the refusal of a full endpoint how long the queue is: what is in flight (the limit) beyond what is worked on.
local function tell_queue(handle, endpoint, limit)
  local capacity = capacity_of(endpoint)
  if not capacity then return end
  local waiting = tostring(math.max(limit - capacity, 0))
  handle:headers():replace("fleetdeck-queue-length", waiting)
  local body = handle:body()
  local text = body:getBytes(0, body:length()):gsub('"queue_length":null', '"queue_length":' .. waiting)
  body:setBytes(text)
  handle:headers():replace("content-length", tostring(#text))
end

local function number_of(text, name) return tonumber(text:match('"' .. name .. '"%s*:%s*(%d+)')) end

-- Returns the tokens of the last report in a piece of an answer, nil where there is none (yet).
local function reported(text)
  local from, at = 1, nil
  while true do
    local found = text:find('"usage"%s*:%s*{', from)
    if not found then break end
    at, from = found, found + 7
  end
  if not at then return nil end
  local usage = text:sub(at)
  local total = number_of(usage, "total_tokens")
  if total then return total end
  local input = number_of(usage, "prompt_tokens") or number_of(usage, "input_tokens")
  local output = number_of(usage, "completion_tokens") or number_of(usage, "output_tokens")
  if input and output then return input + output end
end

-- Notes something for the access log. Looked up anew each time: what a handle gave is void after a wait for more.
local function note(handle, name, value) handle:streamInfo():dynamicMetadata():set("fleetdeck", name, value) end

-- Follows an answer piece by piece, as it passes; nothing is held back.
local function count_tokens(handle, is_stream)
  local carried, events, told = "", 0, nil
  for chunk in handle:bodyChunks() do
    local length = chunk:length()
    if length > 0 then
      local piece = chunk:getBytes(0, length)
      local text = carried .. piece
      if text:find('"usage"', 1, true) then
        local tokens = reported(text)
        if tokens and tokens ~= told then
          told = tokens
          note(handle, "tokens", tokens)
        end
      end
      carried = text:sub(-CARRIED)
      if is_stream then
        local _, more = piece:gsub("data: ?{", "")
        events = events + more
        note(handle, "events", events)
      end
    end
  end
end

function envoy_on_response(handle)
  local route = handle:metadata()
  local endpoint = route:get("endpoint")
  if not endpoint then return end
  local headers = handle:headers()
  if headers:get("fleetdeck-queue-length") == "unknown" then return tell_queue(handle, endpoint, route:get("limit")) end
  local kind = headers:get("content-type") or ""
  if kind:find("text/event-stream", 1, true) then
    count_tokens(handle, true)
  elseif kind:find("json", 1, true) then
    count_tokens(handle, false)
  end
end
