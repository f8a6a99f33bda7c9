package forward

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// stateListen is TCP_LISTEN in /proc/net/tcp's column st.
const stateListen = "0A"

// listeners are the listening TCP sockets of the machine.
func listeners() []netip.AddrPort {
	var all []netip.AddrPort
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if content, err := os.ReadFile(path); err == nil { // without IPv6, the second is missing
			all = append(all, parseListeners(string(content))...)
		}
	}
	return all
}

// parseListeners reads a table of proc(5)'s /proc/net/tcp or tcp6: `sl local_address rem_address st …`.
func parseListeners(table string) []netip.AddrPort {
	var found []netip.AddrPort
	for _, line := range strings.Split(table, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != stateListen {
			continue
		}
		if address, ok := parseAddress(fields[1]); ok {
			found = append(found, address)
		}
	}
	return found
}

// parseAddress reads `0100007F:1F90`: the address as 32-bit words in the machine's byte order, the port as a number.
func parseAddress(text string) (netip.AddrPort, bool) {
	host, port, found := strings.Cut(text, ":")
	number, err := strconv.ParseUint(port, 16, 16)
	raw, hexErr := hex.DecodeString(host)
	if !found || err != nil || hexErr != nil || (len(raw) != 4 && len(raw) != 16) {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	address, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(address.Unmap(), uint16(number)), ok
}
