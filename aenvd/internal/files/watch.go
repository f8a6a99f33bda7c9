package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"connectrpc.com/connect"
	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	pb "aenvd/internal/gen/filesystem"
	"aenvd/internal/users"
)

// networkFileSystems are by their magic numbers (statfs(2)); x/sys has no names for all of them.
var networkFileSystems = map[int64]string{
	unix.NFS_SUPER_MAGIC: "NFS", 0xFF534D42: "CIFS", 0x517B: "SMB", 0xFE534D42: "SMB2", unix.FUSE_SUPER_MAGIC: "FUSE", 0x01021997: "9P",
}

// watch turns what inotify reports below one directory into events.
type watch struct {
	root         string
	recursive    bool
	includeEntry bool
	notifier     *fsnotify.Watcher
	closing      sync.Once
}

type watchOptions struct{ recursive, includeEntry, allowNetworkMounts bool }

func newWatch(root string, options watchOptions) (*watch, error) {
	if err := checkDir(root); err != nil {
		return nil, err
	}
	if err := checkMount(root, options.allowNetworkMounts); err != nil {
		return nil, err
	}
	notifier, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("watch '%s': %w", root, err))
	}
	w := &watch{root: root, recursive: options.recursive, includeEntry: options.includeEntry, notifier: notifier}
	if _, err := w.add(root); err != nil {
		w.Close()
		return nil, watchError(root, err)
	}
	return w, nil
}

func checkMount(path string, allowed bool) error {
	var stat unix.Statfs_t
	if allowed || unix.Statfs(path, &stat) != nil {
		return nil
	}
	name, network := networkFileSystems[int64(stat.Type)]
	if !network {
		return nil
	}
	return connect.NewError(connect.CodeInvalidArgument,
		fmt.Errorf("path '%s' is on a network file system (%s), which reports only changes made in this sandbox; set allow_network_mounts to watch it all the same", path, name))
}

func watchError(path string, err error) error {
	if errors.Is(err, unix.ENOSPC) {
		return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("path '%s': more directories than fs.inotify.max_user_watches allows", path))
	}
	return pathError(path, err)
}

// add watches a directory and, when asked to, those below. It returns the paths found below, which a new directory may
// have got before it was watched.
func (w *watch) add(dir string) (found []string, err error) {
	if err := w.notifier.Add(dir); err != nil {
		return nil, err
	}
	if !w.recursive {
		return nil, nil
	}
	children, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, child := range children {
		path := filepath.Join(dir, child.Name())
		found = append(found, path)
		if !child.IsDir() {
			continue
		}
		below, err := w.add(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return found, err
		}
		found = append(found, below...)
	}
	return found, nil
}

// Close ends the watch and its events.
func (w *watch) Close() {
	w.closing.Do(func() { w.notifier.Close() })
}

// run hands events to emit until Close, or until emit returns false.
func (w *watch) run(emit func(*pb.FilesystemEvent) bool) error {
	for {
		select {
		case event, more := <-w.notifier.Events:
			if !more {
				return nil
			}
			if !w.handle(event, emit) {
				return nil
			}
		case err, more := <-w.notifier.Errors:
			if !more {
				return nil
			}
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("watch '%s': changes came faster than they could be read, some are lost", w.root))
			}
			return connect.NewError(connect.CodeInternal, fmt.Errorf("watch '%s': %w", w.root, err))
		}
	}
}

var eventTypes = []struct {
	op   fsnotify.Op
	kind pb.EventType
}{
	{fsnotify.Create, pb.EventType_EVENT_TYPE_CREATE},
	{fsnotify.Write, pb.EventType_EVENT_TYPE_WRITE},
	{fsnotify.Remove, pb.EventType_EVENT_TYPE_REMOVE},
	{fsnotify.Rename, pb.EventType_EVENT_TYPE_RENAME},
	{fsnotify.Chmod, pb.EventType_EVENT_TYPE_CHMOD},
}

func (w *watch) handle(event fsnotify.Event, emit func(*pb.FilesystemEvent) bool) bool {
	for _, candidate := range eventTypes {
		if event.Has(candidate.op) && !emit(w.event(event.Name, candidate.kind)) {
			return false
		}
	}
	if !event.Has(fsnotify.Create) || !w.recursive || !isDir(event.Name) {
		return true
	}
	found, _ := w.add(event.Name) // gone again: its own events tell
	for _, path := range found {
		if !emit(w.event(path, pb.EventType_EVENT_TYPE_CREATE)) {
			return false
		}
	}
	return true
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

func (w *watch) event(path string, kind pb.EventType) *pb.FilesystemEvent {
	name, err := filepath.Rel(w.root, path)
	if err != nil {
		name = path
	}
	event := &pb.FilesystemEvent{Name: name, Type: kind}
	gone := kind == pb.EventType_EVENT_TYPE_REMOVE || kind == pb.EventType_EVENT_TYPE_RENAME
	if w.includeEntry && !gone {
		if entry, err := entryInfo(path, users.LoadNames()); err == nil {
			event.Entry = entry
		}
	}
	return event
}
