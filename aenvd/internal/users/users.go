// Package users finds the users and groups of the image: its own /etc/passwd and /etc/group, read each time, because
// programs in the sandbox change them.
package users

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

const (
	passwdFile = "/etc/passwd"
	groupFile  = "/etc/group"
)

// User is who a request acts as.
type User struct {
	Name string
	UID  uint32
	GID  uint32
	Home string
	// Groups are the supplementary groups, with GID among them.
	Groups []uint32
}

// UnknownError says that the image has no such user.
type UnknownError struct{ Name string }

func (e UnknownError) Error() string { return fmt.Sprintf("invalid username: '%s'", e.Name) }

// Lookup finds a user by name or number; `name:group` as in an image's configuration picks the group too. A number
// without an entry is a user without a name whose home is /, as container engines have it.
func Lookup(spec string) (User, error) {
	passwd, err := readOptional(passwdFile)
	if err != nil {
		return User{}, err
	}
	group, err := readOptional(groupFile)
	if err != nil {
		return User{}, err
	}
	return find(spec, passwd, group)
}

// readOptional: an image may do without these files.
func readOptional(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	return string(content), nil
}

func find(spec, passwd, group string) (User, error) {
	name, groupName, hasGroup := strings.Cut(spec, ":")
	user, err := findUser(name, passwd)
	if err != nil {
		return User{}, UnknownError{spec}
	}
	if hasGroup {
		gid, ok := findGroup(groupName, group)
		if !ok {
			return User{}, UnknownError{spec}
		}
		user.GID = gid
	}
	user.Groups = groupsOf(user, group)
	return user, nil
}

func findUser(name, passwd string) (User, error) {
	number, numberErr := parseID(name)
	for fields := range records(passwd, 6) {
		uid, uidErr := parseID(fields[2])
		gid, gidErr := parseID(fields[3])
		if uidErr != nil || gidErr != nil {
			continue
		}
		if fields[0] == name || (numberErr == nil && uid == number) {
			return User{Name: fields[0], UID: uid, GID: gid, Home: homeOr(fields[5])}, nil
		}
	}
	switch {
	case name == "root" || (numberErr == nil && number == 0):
		return User{Name: "root", Home: "/root"}, nil // an image without /etc/passwd still has one
	case numberErr == nil:
		return User{Name: name, UID: number, Home: "/"}, nil
	}
	return User{}, UnknownError{name}
}

func homeOr(home string) string {
	if !strings.HasPrefix(home, "/") {
		return "/"
	}
	return home
}

func findGroup(name, group string) (uint32, bool) {
	for fields := range records(group, 3) {
		if gid, err := parseID(fields[2]); err == nil && fields[0] == name {
			return gid, true
		}
	}
	gid, err := parseID(name)
	return gid, err == nil
}

func groupsOf(user User, group string) []uint32 {
	groups := []uint32{user.GID}
	for fields := range records(group, 4) {
		gid, err := parseID(fields[2])
		if err == nil && !slices.Contains(groups, gid) && slices.Contains(strings.Split(fields[3], ","), user.Name) {
			groups = append(groups, gid)
		}
	}
	return groups
}

// records yields the lines of a passwd(5) or group(5) file that have at least `least` fields.
func records(content string, least int) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		reader := bufio.NewReader(strings.NewReader(content))
		for {
			line, err := reader.ReadString('\n')
			fields := strings.Split(strings.TrimSpace(line), ":")
			if len(fields) >= least && fields[0] != "" && !strings.HasPrefix(fields[0], "#") && !yield(fields) {
				return
			}
			if err == io.EOF {
				return
			}
		}
	}
}

func parseID(text string) (uint32, error) {
	id, err := strconv.ParseUint(text, 10, 32)
	return uint32(id), err
}

// Names translates numbers to names, for one listing: it reads the files once.
type Names struct {
	users, groups map[uint32]string
}

// LoadNames reads /etc/passwd and /etc/group; without them every name is a number.
func LoadNames() Names {
	passwd, _ := readOptional(passwdFile)
	group, _ := readOptional(groupFile)
	return Names{users: idNames(passwd), groups: idNames(group)}
}

func idNames(content string) map[uint32]string {
	names := map[uint32]string{}
	for fields := range records(content, 3) {
		id, err := parseID(fields[2])
		if _, known := names[id]; err == nil && !known {
			names[id] = fields[0]
		}
	}
	return names
}

// User is the name for a uid.
func (n Names) User(uid uint32) string { return nameOr(n.users, uid) }

// Group is the name for a gid.
func (n Names) Group(gid uint32) string { return nameOr(n.groups, gid) }

func nameOr(names map[uint32]string, id uint32) string {
	if name, ok := names[id]; ok {
		return name
	}
	return strconv.FormatUint(uint64(id), 10)
}
