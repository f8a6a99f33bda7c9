package boot

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"aenvd/internal/netlink"
)

// The network driver registers its interface shortly after it is loaded.
const interfaceTimeout = 2 * time.Second

func configureNetwork(config Config) error {
	connection, err := netlink.Open()
	if err != nil {
		return err
	}
	defer connection.Close()
	loopback, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	if err := connection.LinkUp(loopback.Index); err != nil {
		return fmt.Errorf("lo: %w", err)
	}
	if !config.Address.IsValid() {
		return nil
	}
	card, err := waitForInterface()
	if err != nil {
		return err
	}
	if err := connection.AddAddress(card.Index, config.Address); err != nil {
		return fmt.Errorf("%s: address %s: %w", card.Name, config.Address, err)
	}
	if err := connection.LinkUp(card.Index); err != nil {
		return fmt.Errorf("%s: %w", card.Name, err)
	}
	if !config.Gateway.IsValid() {
		return nil
	}
	if err := connection.AddDefaultRoute(card.Index, config.Gateway); err != nil {
		return fmt.Errorf("route by %s: %w", config.Gateway, err)
	}
	return nil
}

// waitForInterface finds the first interface that is a network card.
func waitForInterface() (*net.Interface, error) {
	deadline := time.Now().Add(interfaceTimeout)
	for {
		interfaces, err := net.Interfaces()
		if err != nil {
			return nil, err
		}
		for _, candidate := range interfaces {
			if len(candidate.HardwareAddr) == 6 && candidate.Flags&net.FlagLoopback == 0 {
				return &candidate, nil
			}
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("no network card within %s; is its driver among the modules?", interfaceTimeout)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// writeResolvConf replaces the file: images often have a symbolic link there, to what a daemon would write.
func writeResolvConf(path string, servers []netip.Addr) error {
	if len(servers) == 0 {
		return nil
	}
	var content bytes.Buffer
	for _, server := range servers {
		fmt.Fprintf(&content, "nameserver %s\n", server)
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.MkdirAll("/etc", 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content.Bytes(), 0o644)
}
