package boot

import (
	"errors"
	"log"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// moduleDir holds the kernel modules as NNN-name.ko, in the order that their dependencies ask for.
const moduleDir = "/lib/modules/ordered"

// loadModules loads all of them. A module that fails is reported and not fatal: whether it was needed shows later,
// with an error that says more.
func loadModules(dir string) {
	paths, _ := filepath.Glob(filepath.Join(dir, "*.ko")) // sorted
	for _, path := range paths {
		if err := loadModule(path); err != nil {
			log.Printf("module %s: %v", filepath.Base(path), err)
		}
	}
}

func loadModule(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unix.FinitModule(int(file.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}
