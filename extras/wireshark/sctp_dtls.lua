-- Shows SCTP's DTLS chunk and its negotiation in Wireshark and tshark (draft-ietf-tsvwg-sctp-dtls-chunk):
--
--   the chunk DTLS (0x41)                       filter: sctp_dtls
--   the parameter DTLS Key Management (0x8006)  filter: sctp_dtls.km
--   messages of key management (PPID 4242)      filter: sctp_dtls_keys
--
-- It decrypts nothing. Use it with: tshark -X lua_script:sctp_dtls.lua, or put it into the folder of personal Lua
-- plugins (Wireshark: Help, About, Folders).

local CHUNK, PARAMETER, PPID = 0x41, 0x8006, 4242
local CHUNK_HEADER, PRE_PADDING, RECORD_HEADER, TRAILER = 4, 1, 3, 17

local methods = {
    [0] = "pre-shared cryptographic parameters",
    [192] = "TLS for DTLS in SCTP",
    [255] = "reserved",
}
local controls = { [1] = "Protection Established" }

local dtls = Proto("sctp_dtls", "SCTP DTLS")
local f = dtls.fields
f.flags = ProtoField.uint8("sctp_dtls.flags", "Flags", base.HEX)
f.restart = ProtoField.bool("sctp_dtls.restart", "R: restart key context", 8, nil, 0x01)
f.length = ProtoField.uint16("sctp_dtls.length", "Chunk length", base.DEC)
f.pre_padding = ProtoField.uint8("sctp_dtls.pre_padding", "Pre-padding", base.HEX)
f.header = ProtoField.uint8("sctp_dtls.header", "Record header", base.HEX)
f.epoch = ProtoField.uint8("sctp_dtls.epoch", "Epoch, low two bits", base.DEC, nil, 0x03)
f.number = ProtoField.uint16("sctp_dtls.masked_number", "Sequence number, masked", base.HEX)
f.encrypted = ProtoField.bytes("sctp_dtls.encrypted", "Encrypted record")
f.encrypted_length = ProtoField.uint16("sctp_dtls.encrypted_length", "Encrypted record's length", base.DEC)
f.chunks_length = ProtoField.uint16("sctp_dtls.chunks_length", "Chunks and DTLS padding in it", base.DEC)
f.km = ProtoField.none("sctp_dtls.km", "DTLS Key Management parameter")
f.tie_breaker = ProtoField.uint32("sctp_dtls.km.tie_breaker", "Tie breaker", base.HEX)
f.km_flags = ProtoField.uint8("sctp_dtls.km.flags", "Flags", base.HEX)
f.km_restart = ProtoField.bool("sctp_dtls.km.restart", "R: supports protected restarts", 8, nil, 0x04)
f.km_server = ProtoField.bool("sctp_dtls.km.server", "S: can be the server", 8, nil, 0x02)
f.km_client = ProtoField.bool("sctp_dtls.km.client", "C: can be the client", 8, nil, 0x01)
f.method = ProtoField.uint8("sctp_dtls.km.method", "Method", base.DEC, methods)

local e = dtls.experts
e.short = ProtoExpert.new("sctp_dtls.short", "Too short", expert.group.MALFORMED, expert.severity.ERROR)
e.header = ProtoExpert.new("sctp_dtls.wrong_header", "Not the record header of a DTLS chunk (0x28 to 0x2b)",
    expert.group.MALFORMED, expert.severity.ERROR)
e.bundled = ProtoExpert.new("sctp_dtls.bundled", "Other chunks in the packet of a DTLS chunk",
    expert.group.PROTOCOL, expert.severity.ERROR)
e.reserved = ProtoExpert.new("sctp_dtls.reserved", "Reserved bits or pre-padding are not zero",
    expert.group.PROTOCOL, expert.severity.WARN)

local chunk_types = Field.new("sctp.chunk_type")
local parameter_types = Field.new("sctp.parameter_type")

-- The bytes of a chunk or parameter whose first field is `info`, as far as they were captured, and the length that
-- it says.
local function bytes_of(info)
    local source, at = info.source, info.offset
    local left = source:len() - at
    if left < CHUNK_HEADER then return nil end
    local length = source(at + 2, 2):uint()
    if length < CHUNK_HEADER then return nil end
    return source(at, math.min(length, left)), length
end

local function show_chunk(info, count, pinfo, tree)
    local bytes, length = bytes_of(info)
    if not bytes then return end
    local node = tree:add(dtls, bytes, "SCTP DTLS chunk")
    node:add(f.flags, bytes(1, 1)):add(f.restart, bytes(1, 1))
    node:add(f.length, bytes(2, 2))
    if count > 1 then node:add_proto_expert_info(e.bundled) end
    local content = CHUNK_HEADER + PRE_PADDING + RECORD_HEADER
    if bytes:len() < length or length < content + TRAILER then
        node:add_proto_expert_info(e.short)
        return
    end
    node:add(f.pre_padding, bytes(4, 1))
    local header = bytes(5, 1)
    if bytes(4, 1):uint() ~= 0 or bytes(1, 1):uint() > 1 then node:add_proto_expert_info(e.reserved) end
    node:add(f.header, header):add(f.epoch, header)
    if header:uint() < 0x28 or header:uint() > 0x2b then
        node:add_proto_expert_info(e.header)
        return
    end
    node:add(f.number, bytes(6, 2))
    node:add(f.encrypted, bytes(content))
    local encrypted = length - content
    node:add(f.encrypted_length, bytes(content), encrypted):set_generated()
    node:add(f.chunks_length, bytes(content), encrypted - TRAILER):set_generated()
    local text = string.format("DTLS (epoch ..%d, %d bytes)", header:uint() % 4, encrypted - TRAILER)
    node:append_text(": " .. text)
    pinfo.cols.info:append(text)
end

local function show_parameter(info, tree)
    local bytes, length = bytes_of(info)
    if not bytes then return end
    local node = tree:add(dtls, bytes, "SCTP DTLS Key Management")
    node:add(f.km, bytes)
    if bytes:len() < length or length < 10 then
        node:add_proto_expert_info(e.short)
        return
    end
    node:add(f.tie_breaker, bytes(4, 4))
    local flags = node:add(f.km_flags, bytes(8, 1))
    for _, bit in ipairs({ f.km_restart, f.km_server, f.km_client }) do flags:add(bit, bytes(8, 1)) end
    if bytes(8, 1):uint() > 7 then node:add_proto_expert_info(e.reserved) end
    for at = 9, length - 1 do node:add(f.method, bytes(at, 1)) end
end

function dtls.dissector(_, pinfo, tree)
    local chunks = { chunk_types() }
    for _, info in ipairs(chunks) do
        if info.value == CHUNK then show_chunk(info, #chunks, pinfo, tree) end
    end
    for _, info in ipairs({ parameter_types() }) do
        if info.value == PARAMETER then show_parameter(info, tree) end
    end
end

register_postdissector(dtls)

-- The messages of "TLS for DTLS in SCTP" (draft-porfiri-tsvwg-sctp-dtls-handshake, "TLS Message Transport").
local keys = Proto("sctp_dtls_keys", "SCTP DTLS key management message")
local k = keys.fields
k.control = ProtoField.bool("sctp_dtls_keys.control", "T: control message", 8, nil, 0x80)
k.epoch = ProtoField.uint8("sctp_dtls_keys.epoch", "Epoch, low seven bits", base.DEC, nil, 0x7f)
k.kind = ProtoField.uint8("sctp_dtls_keys.control_type", "Control type", base.DEC, controls)

local tls = Dissector.get("tls")

function keys.dissector(tvb, pinfo, tree)
    if tvb:len() < 1 then return 0 end
    local node = tree:add(keys, tvb(0, math.min(2, tvb:len())))
    node:add(k.control, tvb(0, 1))
    node:add(k.epoch, tvb(0, 1))
    if tvb(0, 1):uint() < 0x80 then
        node:set_len(1)
        if tvb:len() > 1 then tls:call(tvb(1):tvb(), pinfo, tree) end
    elseif tvb:len() > 1 then
        node:add(k.kind, tvb(1, 1))
    end
    return tvb:len()
end

DissectorTable.get("sctp.ppi"):add(PPID, keys)
