// Package netlink configures network interfaces through the kernel's rtnetlink socket (rtnetlink(7)), so that the
// image need not have `ip`.
package netlink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Conn is an rtnetlink socket; not safe for use by several goroutines.
type Conn struct {
	fd       int
	sequence uint32
}

// Open makes a connection to the kernel of the current network namespace.
func Open() (*Conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink socket: %w", err)
	}
	return &Conn{fd: fd}, nil
}

// Close frees the socket.
func (c *Conn) Close() error { return unix.Close(c.fd) }

// LinkUp is `ip link set up`.
func (c *Conn) LinkUp(index int) error {
	return c.request(unix.RTM_NEWLINK, 0, linkUpMessage(index))
}

// AddAddress is `ip addr add`; an address that is there already is fine.
func (c *Conn) AddAddress(index int, address netip.Prefix) error {
	return ignoreExists(c.request(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, addressMessage(index, address)))
}

// AddDefaultRoute is `ip route add default via`; a route that is there already is fine.
func (c *Conn) AddDefaultRoute(index int, gateway netip.Addr) error {
	return ignoreExists(c.request(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, defaultRouteMessage(index, gateway)))
}

func ignoreExists(err error) error {
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// linkUpMessage is a struct ifinfomsg: family, pad, type (2), index (4), flags (4), change mask (4).
func linkUpMessage(index int) []byte {
	body := []byte{unix.AF_UNSPEC, 0, 0, 0}
	body = binary.NativeEndian.AppendUint32(body, uint32(index))
	body = binary.NativeEndian.AppendUint32(body, unix.IFF_UP)
	return binary.NativeEndian.AppendUint32(body, unix.IFF_UP)
}

// addressMessage is a struct ifaddrmsg (family, prefix length, flags, scope, index) and its attributes.
func addressMessage(index int, address netip.Prefix) []byte {
	raw := address.Addr().AsSlice()
	body := []byte{family(address.Addr()), byte(address.Bits()), 0, unix.RT_SCOPE_UNIVERSE}
	body = binary.NativeEndian.AppendUint32(body, uint32(index))
	body = appendAttribute(body, unix.IFA_LOCAL, raw)
	return appendAttribute(body, unix.IFA_ADDRESS, raw)
}

// defaultRouteMessage is a struct rtmsg (family, two prefix lengths, TOS, table, protocol, scope, type, flags) and its
// attributes.
func defaultRouteMessage(index int, gateway netip.Addr) []byte {
	body := []byte{family(gateway), 0, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_BOOT, unix.RT_SCOPE_UNIVERSE, unix.RTN_UNICAST, 0, 0, 0, 0}
	body = appendAttribute(body, unix.RTA_GATEWAY, gateway.AsSlice())
	return appendAttribute(body, unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, uint32(index)))
}

func family(address netip.Addr) byte {
	if address.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// appendAttribute adds a struct rtattr, padded to four bytes.
func appendAttribute(body []byte, kind uint16, value []byte) []byte {
	body = binary.NativeEndian.AppendUint16(body, uint16(unix.SizeofRtAttr+len(value)))
	body = binary.NativeEndian.AppendUint16(body, kind)
	body = append(body, value...)
	for len(body)%unix.RTA_ALIGNTO != 0 {
		body = append(body, 0)
	}
	return body
}

// request sends one message and waits for its acknowledgement.
func (c *Conn) request(kind uint16, flags uint16, body []byte) error {
	c.sequence++
	message := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	message = binary.NativeEndian.AppendUint16(message, kind)
	message = binary.NativeEndian.AppendUint16(message, unix.NLM_F_REQUEST|unix.NLM_F_ACK|flags)
	message = binary.NativeEndian.AppendUint32(message, c.sequence)
	message = binary.NativeEndian.AppendUint32(message, 0) // to the kernel
	message = append(message, body...)
	if err := unix.Sendto(c.fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("netlink send: %w", err)
	}
	reply := make([]byte, 4096)
	n, _, err := unix.Recvfrom(c.fd, reply, 0)
	if err != nil {
		return fmt.Errorf("netlink receive: %w", err)
	}
	return parseAck(reply[:n], c.sequence)
}

// parseAck reads a struct nlmsgerr: the negated errno, 0 for success.
func parseAck(reply []byte, sequence uint32) error {
	if len(reply) < unix.SizeofNlMsghdr+4 {
		return fmt.Errorf("netlink: a reply of %d bytes", len(reply))
	}
	if kind := binary.NativeEndian.Uint16(reply[4:]); kind != unix.NLMSG_ERROR {
		return fmt.Errorf("netlink: reply of type %d", kind)
	}
	if got := binary.NativeEndian.Uint32(reply[8:]); got != sequence {
		return fmt.Errorf("netlink: reply to message %d, expected %d", got, sequence)
	}
	code := int32(binary.NativeEndian.Uint32(reply[unix.SizeofNlMsghdr:]))
	if code == 0 {
		return nil
	}
	return unix.Errno(-code)
}
