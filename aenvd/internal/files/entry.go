// Package files gives access to the files of the sandbox: the Connect service, and up- and downloads.
package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "aenvd/internal/gen/filesystem"
	"aenvd/internal/users"
)

// entryInfo describes path itself, not what a symbolic link there points to; only the type is the target's.
func entryInfo(path string, names users.Names) (*pb.EntryInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	entry := &pb.EntryInfo{
		Name: filepath.Base(path), Path: path, Type: fileType(info.Mode()), Size: info.Size(),
		Mode: uint32(info.Mode().Perm()), Permissions: info.Mode().String(), ModifiedTime: timestamppb.New(info.ModTime()),
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		entry.Owner, entry.Group = names.User(stat.Uid), names.Group(stat.Gid)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		describeLink(entry, path)
	}
	if entry.Type == pb.FileType_FILE_TYPE_FILE || entry.Type == pb.FileType_FILE_TYPE_DIRECTORY {
		entry.Metadata = readMetadata(path)
	}
	return entry, nil
}

func describeLink(entry *pb.EntryInfo, path string) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil { // it leads nowhere, or in a circle
		if target, err = os.Readlink(path); err == nil {
			entry.SymlinkTarget = &target
		}
		return
	}
	entry.SymlinkTarget = &target
	if info, err := os.Stat(target); err == nil {
		entry.Type = fileType(info.Mode())
	}
}

func fileType(mode fs.FileMode) pb.FileType {
	switch {
	case mode.IsRegular():
		return pb.FileType_FILE_TYPE_FILE
	case mode.IsDir():
		return pb.FileType_FILE_TYPE_DIRECTORY
	case mode&fs.ModeSymlink != 0:
		return pb.FileType_FILE_TYPE_SYMLINK
	default:
		return pb.FileType_FILE_TYPE_UNSPECIFIED
	}
}

// makeDirs makes a directory and those above it that are missing (0755); the new ones belong to the user.
func makeDirs(path string, user users.User) error {
	var missing []string
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
		}
		if err == nil {
			break
		}
		if !os.IsNotExist(err) {
			return err
		}
		missing = append(missing, dir)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if err := os.Mkdir(missing[i], 0o755); os.IsExist(err) {
			continue // somebody else was quicker
		} else if err != nil {
			return err
		}
		if err := chown(missing[i], user); err != nil {
			return err
		}
	}
	return nil
}

// chown hands a file to the user. A daemon that is not root can only make files of its own.
func chown(path string, user users.User) error {
	if os.Getuid() != 0 {
		return nil
	}
	return os.Lchown(path, int(user.UID), int(user.GID))
}
