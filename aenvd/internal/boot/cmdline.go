// Package boot is what aenvd does as PID 1 before it serves: kernel modules, mounts, the switch to the image's root
// file system, the network.
package boot

import (
	"fmt"
	"net/netip"
	"strings"
)

// Config is the part of the kernel's command line that is for us.
type Config struct {
	// Root is the block device with the image's file system.
	Root       string
	RootFSType string
	// Address of the first network interface; invalid when none was given.
	Address netip.Prefix
	Gateway netip.Addr
	DNS     []netip.Addr
}

// ParseCmdline reads the `aenv.*` words of a kernel command line. Unknown words are for others.
func ParseCmdline(line string) (Config, error) {
	config := Config{Root: "/dev/vda", RootFSType: "ext4"}
	for _, word := range strings.Fields(line) {
		key, value, _ := strings.Cut(word, "=")
		if err := config.set(key, value); err != nil {
			return Config{}, fmt.Errorf("kernel command line: %s: %w", word, err)
		}
	}
	return config, nil
}

func (c *Config) set(key, value string) (err error) {
	switch key {
	case "aenv.root":
		c.Root = value
	case "aenv.rootfstype":
		c.RootFSType = value
	case "aenv.ip":
		c.Address, err = netip.ParsePrefix(value)
	case "aenv.gw":
		c.Gateway, err = netip.ParseAddr(value)
	case "aenv.dns":
		c.DNS, err = parseAddresses(value)
	}
	return err
}

func parseAddresses(list string) ([]netip.Addr, error) {
	var addresses []netip.Addr
	for _, text := range strings.Split(list, ",") {
		if text == "" {
			continue
		}
		address, err := netip.ParseAddr(text)
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}
