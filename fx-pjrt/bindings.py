"""Writes src/sys: python fx-pjrt/bindings.py pjrt_c_api.h

Reads XLA's public header of the PJRT C interface and writes what fx uses of it as Rust. Packages that ship the header
name it xla/pjrt/c/pjrt_c_api.h. The table of entries only grows at its end from version to version, and so do structures:
what is read from one version fits the plugins of later ones. Needs Python and rustfmt.
"""

import pathlib
import re
import subprocess
import sys

# The entries that fx calls. The others stand in the table without a type, since their place counts.
CALLED = """
Error_Destroy Error_Message Error_GetCode Plugin_Initialize Plugin_Attributes
Event_Destroy Event_Await Event_OnReady
Client_Create Client_Destroy Client_PlatformName Client_PlatformVersion Client_ProcessIndex
Client_AddressableDevices Client_Compile Client_BufferFromHostBuffer
DeviceDescription_Id DeviceDescription_ProcessIndex DeviceDescription_Kind DeviceDescription_ToString
Device_GetDescription Device_MemoryStats
Executable_Destroy Executable_NumOutputs Executable_OptimizedProgram Executable_OutputElementTypes
Executable_OutputDimensions Executable_Serialize
LoadedExecutable_Destroy LoadedExecutable_GetExecutable LoadedExecutable_Execute
Executable_DeserializeAndLoad
Buffer_Destroy Buffer_ToHostBuffer Buffer_ReadyEvent Buffer_UnsafePointer
""".split()

PLAIN = {
    "void": "c_void", "char": "c_char", "bool": "bool", "float": "f32", "size_t": "usize", "int": "c_int",
    "int32_t": "i32", "int64_t": "i64", "uint8_t": "u8", "uint32_t": "u32", "uint64_t": "u64", "uintptr_t": "usize",
}

HEAD = '''//! XLA's PJRT C interface, version {major}.{minor}: the table of entries, with what this crate uses of it.
//!
//! Invariant: `bindings.py` writes this folder from the public header; nobody edits it. Structures only grow at their
//! ends, and each says how far ours goes.
#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals, missing_docs)]
#![allow(dead_code, reason = "all values of what is used are here")]

mod structures;
mod values;

use std::ffi::{{c_int, c_void}};

pub use structures::*;
pub use values::*;

/// The version of the interface that these structures are of.
pub const API_VERSION: (c_int, c_int) = ({major}, {minor});

/// A structure that begins with its size.
pub trait Structure: Copy {{
    /// The size that it says: up to the end of the last field.
    const STRUCT_SIZE: usize;

    /// The structure with its size, and zero in every other field.
    fn sized() -> Self;
}}
'''

VALUES = '''//! The values and the objects that structures of the C interface name.
'''

STRUCTURES = '''//! The structures of the C interface with their sizes, and functions that take them.

use std::ffi::{c_char, c_int, c_void};
use std::mem::{offset_of, size_of};

use super::Structure;
use super::values::*;

macro_rules! structures {
    ($($name:ident: $last:ident, $type:ty;)*) => {$(
        impl Structure for $name {
            const STRUCT_SIZE: usize = offset_of!($name, $last) + size_of::<$type>();

            fn sized() -> Self {
                // SAFETY: zero is a value of every field: of numbers, of pointers, and of functions that may be absent.
                let mut made: Self = unsafe { std::mem::zeroed() };
                made.struct_size = Self::STRUCT_SIZE;
                made
            }
        }
    )*};
}
'''


def cleaned(text):
    """The header without comments, macros and lines that continue."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    text = text.replace("\\\n", " ")
    return "\n".join(line for line in text.split("\n") if not line.startswith("#"))


class Header:
    def __init__(self, text):
        number = lambda name: int(re.search(rf"#define PJRT_API_{name} (\d+)", text).group(1))
        self.version = number("MAJOR"), number("MINOR")
        text = cleaned(text)
        self.enums = {}
        for body, name in re.findall(r"typedef enum \{(.*?)\} (\w+);", text, re.S):
            value, values = -1, []
            for item in filter(None, (part.strip() for part in body.split(","))):
                key, _, given = (part.strip() for part in item.partition("="))
                value = int(given, 0) if given else value + 1
                values.append((key, value))
            self.enums[name] = values
        self.structs = {}
        for name, body in re.findall(r"(?:typedef )?struct (\w+) \{(.*?)\n\}", text, re.S):
            self.structs.setdefault(name, body)
        self.callbacks = {}
        for result, name, arguments in re.findall(r"typedef ([\w\s]+\*?)\s*\(\*(\w+)\)\(([^)]*)\);", text):
            self.callbacks[name] = (result, arguments)
        table = self.structs.pop("PJRT_Api")
        self.entries = re.findall(r"_PJRT_API_STRUCT_FIELD\((\w+)\)", table)
        self.functions = {}
        for result, name, arguments in re.findall(r"typedef ([\w\s]+\*?)\s*(PJRT_\w+)\(([^)]*)\);", text):
            self.functions[name] = (result, arguments)
        self.needed = {"PJRT_Api_Version", "PJRT_Extension_Base"}

    def rust(self, text):
        """A C type as a Rust one; what it names is needed from now on."""
        text = text.replace("struct ", " ").strip()
        pointers = []
        while text.endswith("*") or text.endswith("const"):
            if text.endswith("const"):
                text = text[:-5].rstrip()
                continue
            head = text[:-1].rstrip()
            constant = head.endswith("const") or (head.startswith("const ") and not head.endswith("*"))
            pointers.append("const" if constant else "mut")
            text = head
        name = text.replace("const ", "").strip()
        if name not in PLAIN:
            self.needed.add(name)
        made = PLAIN.get(name, name)
        for pointer in reversed(pointers):
            made = f"*{pointer} {made}"
        return made

    def signature(self, result, arguments):
        made = []
        for argument in filter(None, (part.strip() for part in arguments.split(","))):
            kind, _ = re.match(r"(.*?)(\w+)$", " ".join(argument.split())).groups()
            made.append(self.rust(kind))
        result = " ".join(result.split())
        result = "" if result == "void" else f" -> {self.rust(result)}"
        return f'unsafe extern "C" fn({", ".join(made)}){result}'

    def fields(self, name):
        """The fields of a structure, and the unions that they need."""
        body, unions, fields = self.structs[name], [], []
        for inner in re.findall(r"union \{(.*?)\};", body, re.S):
            union = f"{name}_value"
            unions.append((union, [self.field(part) for part in filter(str.strip, inner.split(";"))]))
            body = re.sub(r"union \{.*?\};", f"{union} value;", body, count=1, flags=re.S)
            self.needed.add(union)
        for part in filter(str.strip, body.split(";")):
            fields.append(self.field(part, {union for union, _ in unions}))
        return fields, unions

    def field(self, text, unions=()):
        text = " ".join(text.split())
        function = re.match(r"([\w\s]+\*?)\s*\(\*(\w+)\)\((.*)\)$", text)
        if function:
            result, name, arguments = function.groups()
            return name, f"Option<{self.signature(result, arguments)}>"
        found = re.match(r"(.*?)(\w+)$", text)
        if not found:
            raise SystemExit(f"no field: {text}")
        kind, name = found.groups()
        if kind.strip() in unions:
            return name, kind.strip()
        return ("type_" if name == "type" else name), self.rust(kind)

    def write(self):
        """The files by name."""
        types = {}
        for entry in CALLED:
            name = f"PJRT_{entry}"
            if name not in self.entries:
                raise SystemExit(f"the header has no {name}")
            types[name] = self.signature(*self.functions[name])
        done, values, structures, sized = set(), [], [], []
        while self.needed - done:
            name = sorted(self.needed - done)[0]
            done.add(name)
            if name in self.enums:
                lines = [f"/// Values of `{name}`.", f"pub type {name} = u32;"]
                values.append((name, lines + [f"pub const {key}: {name} = {value};" for key, value in self.enums[name]]))
            elif name in self.callbacks:
                signature = self.signature(*self.callbacks[name])
                structures.append((name, ["/// A function that the plugin calls.", f"pub type {name} = Option<{signature}>;"]))
            elif name in self.structs:
                fields, unions = self.fields(name)
                lines = []
                for union, inner in unions:
                    done.add(union)
                    lines += ["#[repr(C)]", "#[derive(Clone, Copy)]", f"pub union {union} {{"]
                    lines += [f"    pub {field}: {kind}," for field, kind in inner] + ["}", ""]
                lines += ["#[repr(C)]", "#[derive(Clone, Copy)]", f"pub struct {name} {{"]
                lines += [f"    pub {field}: {kind}," for field, kind in fields] + ["}"]
                structures.append((name, lines))
                if fields[0][0] == "struct_size":
                    sized.append(f"    {name}: {fields[-1][0]}, {fields[-1][1]};")
            elif not name.endswith("_value"):
                lines = ["/// Known to the plugin only.", "#[repr(C)]", f"pub struct {name} {{", "    private: [u8; 0],"]
                values.append((name, [*lines, "}"]))
        table = ["/// The table of entries; those that are not called here have no type.", "#[repr(C)]"]
        table += ["#[derive(Clone, Copy)]", "pub struct PJRT_Api {", "    pub struct_size: usize,"]
        table += ["    pub extension_start: *mut PJRT_Extension_Base,", "    pub pjrt_api_version: PJRT_Api_Version,"]
        for entry in self.entries:
            kind = f"Option<{types[entry]}>" if entry in types else "*const c_void"
            table.append(f"    pub {entry}: {kind},")
        joined = lambda all: ["\n".join([*lines, ""]) for _, lines in sorted(all)]
        major, minor = self.version
        return {
            "mod.rs": [HEAD.format(major=major, minor=minor), *table, "}", ""],
            "values.rs": [VALUES, *joined(values)],
            "structures.rs": [STRUCTURES, *joined(structures), "structures! {", *sorted(sized), "}", ""],
        }


def main():
    header = Header(pathlib.Path(sys.argv[1]).read_text())
    folder = pathlib.Path(__file__).parent / "src" / "sys"
    folder.mkdir(exist_ok=True)
    for name, lines in header.write().items():
        (folder / name).write_text("\n".join(lines))
    subprocess.run(["rustfmt", "--edition", "2024", folder / "mod.rs"], check=True)
    print(f"{folder}: version {header.version[0]}.{header.version[1]}, {len(header.entries)} entries")


if __name__ == "__main__":
    main()
