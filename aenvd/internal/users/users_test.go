package users

import (
	"errors"
	"reflect"
	"testing"
)

const (
	testPasswd = "root:x:0:0:root:/root:/bin/bash\n# comment\n\nbroken:x:y\nuser:x:1000:1000::/home/user:/bin/bash\nnohome:x:7:7::::\n+nis\n"
	testGroup  = "root:x:0:\nuser:x:1000:\nsudo:x:27:user,other\ndocker:x:998:other,user\nbad:x:n:user\n"
)

func TestFind(t *testing.T) {
	cases := map[string]User{
		"root":      {Name: "root", Home: "/root", Groups: []uint32{0}},
		"0":         {Name: "root", Home: "/root", Groups: []uint32{0}},
		"user":      {Name: "user", UID: 1000, GID: 1000, Home: "/home/user", Groups: []uint32{1000, 27, 998}},
		"1000":      {Name: "user", UID: 1000, GID: 1000, Home: "/home/user", Groups: []uint32{1000, 27, 998}},
		"user:sudo": {Name: "user", UID: 1000, GID: 27, Home: "/home/user", Groups: []uint32{27, 998}},
		"user:5":    {Name: "user", UID: 1000, GID: 5, Home: "/home/user", Groups: []uint32{5, 27, 998}},
		"4242":      {Name: "4242", UID: 4242, Home: "/", Groups: []uint32{0}},
		"nohome":    {Name: "nohome", UID: 7, GID: 7, Home: "/", Groups: []uint32{7}},
	}
	for spec, want := range cases {
		got, err := find(spec, testPasswd, testGroup)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", spec, got, err, want)
		}
	}
}

func TestFindUnknown(t *testing.T) {
	for _, spec := range []string{"nobody", "", "user:nogroup", "-1", "broken", "4294967296"} {
		_, err := find(spec, testPasswd, testGroup)
		if !errors.As(err, &UnknownError{}) {
			t.Errorf("%q: got %v", spec, err)
		}
	}
	if _, err := find("root123", testPasswd, testGroup); err.Error() != "invalid username: 'root123'" {
		t.Errorf("message: %v", err)
	}
}

func TestFindInAnEmptyImage(t *testing.T) {
	got, err := find("root", "", "")
	if err != nil || got.UID != 0 || got.Home != "/root" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestNames(t *testing.T) {
	names := Names{users: idNames(testPasswd), groups: idNames(testGroup)}
	if names.User(1000) != "user" || names.Group(27) != "sudo" || names.User(77) != "77" {
		t.Errorf("got %s %s %s", names.User(1000), names.Group(27), names.User(77))
	}
}

func FuzzFind(f *testing.F) {
	f.Add("user", testPasswd, testGroup)
	f.Add("1:2", ":::::::", "a:b:c:d:e")
	f.Fuzz(func(t *testing.T, spec, passwd, group string) {
		user, err := find(spec, passwd, group)
		if err == nil && (user.Home == "" || user.Home[0] != '/' || len(user.Groups) == 0 || user.Groups[0] != user.GID) {
			t.Errorf("%q: %+v", spec, user)
		}
	})
}
