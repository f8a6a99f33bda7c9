package boot

import (
	"fmt"
	"log"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The limits of open files that children inherit; the kernel's for PID 1 (1024, hard 4096) are too small for servers. The
// soft one stays low enough for programs that close every possible descriptor.
const (
	openFiles    = 1 << 16
	maxOpenFiles = 1 << 20
)

// Run brings the machine up. It returns with the image's root file system at / and the network configured.
func Run() (Config, error) {
	started := time.Now()
	surviveSignals()
	unix.Umask(0o022)
	config, err := readConfig()
	if err != nil {
		return config, err
	}
	if err := mountImage(config); err != nil {
		return config, err
	}
	finishRoot()
	// A guest without a network is still of use to find out why.
	if err := configureNetwork(config); err != nil {
		log.Printf("network: %v", err)
	}
	if err := writeResolvConf("/etc/resolv.conf", config.DNS); err != nil {
		log.Printf("resolv.conf: %v", err)
	}
	limit := syscall.Rlimit{Cur: openFiles, Max: maxOpenFiles}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		log.Printf("open files limit: %v", err)
	}
	log.Printf("root %s (%s) up in %s", config.Root, config.RootFSType, time.Since(started).Round(time.Millisecond))
	return config, nil
}

func readConfig() (Config, error) {
	if err := mountAll(earlyMounts); err != nil {
		return Config{}, err
	}
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return Config{}, err
	}
	return ParseCmdline(string(line))
}

// mountImage makes the image's file system the root, with everything mounted in it.
func mountImage(config Config) error {
	loadModules(moduleDir)
	if err := mountRoot(config); err != nil {
		return err
	}
	if err := switchRoot(); err != nil {
		return fmt.Errorf("switch root: %w", err)
	}
	return mountAll(lateMounts)
}

// Fail ends the machine: PID 1 can't go on, and a VMM that exits tells the host more than one that hangs.
func Fail(err error) {
	log.Printf("boot failed: %v", err)
	unix.Sync()
	time.Sleep(50 * time.Millisecond) // the serial line is slow, and the message is all that the host gets
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART); err != nil {
		log.Printf("reboot: %v", err)
	}
	os.Exit(1)
}
