package proc

import (
	"fmt"
	"os"
)

// processFiles are both ends of what connects us to a process.
type processFiles struct {
	child   []*os.File
	input   *os.File
	tty     *os.File
	sources []source
}

func (f *processFiles) closeChild() {
	for i, file := range f.child {
		if i == 0 || file != f.child[0] { // a terminal is there three times
			file.Close()
		}
	}
}

func (f *processFiles) closeParent() {
	if f.input != nil && f.input != f.tty {
		f.input.Close()
	}
	for _, src := range f.sources {
		src.file.Close()
	}
}

func openFiles(spec Spec) (*processFiles, error) {
	if spec.Size != nil {
		return openTerminal(spec)
	}
	return openPipes(spec.Stdin)
}

func openTerminal(spec Spec) (*processFiles, error) {
	master, slave, err := openPTY()
	if err != nil {
		return nil, err
	}
	files := &processFiles{child: []*os.File{slave, slave, slave}, input: master, tty: master, sources: []source{{Terminal, master}}}
	if err := resize(master, *spec.Size); err != nil {
		files.closeChild()
		files.closeParent()
		return nil, fmt.Errorf("size the terminal: %w", err)
	}
	if os.Getuid() == 0 {
		// The user must be able to open it by its name (`tty`, ssh, sudo).
		if err := slave.Chown(int(spec.User.UID), -1); err != nil {
			files.closeChild()
			files.closeParent()
			return nil, fmt.Errorf("hand over the terminal: %w", err)
		}
	}
	return files, nil
}

func openPipes(stdin bool) (files *processFiles, err error) {
	files = &processFiles{}
	defer func() {
		if err != nil {
			files.closeChild()
			files.closeParent()
		}
	}()
	var childInput *os.File
	if stdin {
		childInput, files.input, err = os.Pipe()
	} else {
		childInput, err = os.Open(os.DevNull)
	}
	if err != nil {
		return files, err
	}
	files.child = append(files.child, childInput)
	for _, kind := range []Kind{Stdout, Stderr} {
		reader, writer, err := os.Pipe()
		if err != nil {
			return files, err
		}
		files.child = append(files.child, writer)
		files.sources = append(files.sources, source{kind, reader})
	}
	return files, nil
}
