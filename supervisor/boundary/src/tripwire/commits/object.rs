//! Git's objects. The id of an object is its digest. Commits, tags and trees refer to other objects by their ids.

use ipc::text::hexadecimal;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// Sizes of a SHA-1 and of a SHA-256 digest, in bytes.
const SIZES: [usize; 2] = [20, 32];

/// Id of an object: SHA-1 or SHA-256 of its kind, length and content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tripwire) struct ObjectId(Vec<u8>);

impl ObjectId {
    pub(in crate::tripwire) fn from_hex(text: &[u8]) -> Option<Self> {
        let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let pair = |pair: &[u8]| Some(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?);
        let bytes: Vec<u8> = text.chunks(2).map(pair).collect::<Option<_>>()?;
        SIZES.contains(&bytes.len()).then_some(Self(bytes))
    }

    pub(super) fn hex(&self) -> String {
        hexadecimal(&self.0)
    }

    /// Computes the id of an object with the same digest algorithm as this id.
    pub(super) fn of_object(&self, kind: &str, content: &[u8]) -> Self {
        let head = format!("{kind} {}\0", content.len());
        Self(if self.0.len() == SIZES[0] {
            Sha1::new().chain_update(head).chain_update(content).finalize().to_vec()
        } else {
            Sha256::new().chain_update(head).chain_update(content).finalize().to_vec()
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GitObject {
    id: ObjectId,
    kind: String,
    content: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreeEntry {
    pub(super) mode: u32,
    pub(super) id: ObjectId,
}

impl GitObject {
    /// Returns an object with the id `id`. `None` if its content has another digest.
    pub(super) fn verified(id: &ObjectId, kind: &str, content: Vec<u8>) -> Option<Self> {
        (id.of_object(kind, &content) == *id).then(|| Self { id: id.clone(), kind: kind.to_owned(), content })
    }

    /// Returns the id of a commit's tree. `None` for other kinds of objects.
    pub(super) fn tree(&self) -> Option<ObjectId> {
        if self.kind == "commit" { self.named(b"tree ").pop() } else { None }
    }

    /// Returns the ids of a commit's parents; for a tag, the id of the tagged object.
    pub(super) fn leads_to(&self) -> Vec<ObjectId> {
        match self.kind.as_str() {
            "commit" => self.named(b"parent "),
            "tag" => self.named(b"object "),
            _ => Vec::new(),
        }
    }

    fn named(&self, word: &[u8]) -> Vec<ObjectId> {
        let lines = self.content.split(|byte| *byte == b'\n');
        let head = lines.take_while(|line| !line.is_empty() && !line.starts_with(b"author "));
        head.filter_map(|line| ObjectId::from_hex(line.strip_prefix(word)?)).collect()
    }

    /// Returns a tree's entry with this name, of the form `MODE SP NAME NUL ID`. `None` if there is none.
    pub(super) fn entry(&self, name: &[u8]) -> Option<TreeEntry> {
        let mut rest = (self.kind == "tree").then_some(self.content.as_slice())?;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == 0)?;
            let (head, tail) = (&rest[..end], &rest[end + 1..]);
            let space = head.iter().position(|byte| *byte == b' ')?;
            let id = tail.get(..self.id.0.len())?;
            if &head[space + 1..] == name {
                let mode = std::str::from_utf8(&head[..space]).ok()?;
                return Some(TreeEntry {
                    mode: u32::from_str_radix(mode, 8).ok()?,
                    id: ObjectId(id.to_vec()),
                });
            }
            rest = &tail[id.len()..];
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> ObjectId {
        ObjectId::from_hex(text.as_bytes()).unwrap()
    }

    #[test]
    fn names_are_those_of_git() {
        // `git hash-object --stdin < /dev/null`, in both formats.
        let sha1 = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
        let sha256 = "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813";
        for name in [sha1, sha256] {
            assert_eq!(id(name).of_object("blob", b"").hex(), name);
        }
        for text in ["", "e6", "zz9de29bb2d1d6434b8b29ae775ad8c2e48c5391", &sha1[1..]] {
            assert_eq!(ObjectId::from_hex(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn an_object_that_is_not_what_its_name_says_is_none() {
        let name = id("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert!(GitObject::verified(&name, "blob", Vec::new()).is_some());
        assert_eq!(GitObject::verified(&name, "blob", b"x".to_vec()), None);
        assert_eq!(GitObject::verified(&name, "tree", Vec::new()), None);
    }

    #[test]
    fn a_message_names_nothing_and_a_cut_tree_has_no_entry() {
        let name = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
        let object = |kind: &str, content: Vec<u8>| {
            let id = id(name).of_object(kind, &content);
            GitObject::verified(&id, kind, content).unwrap()
        };
        let text = format!("tree {name}\nparent {name}\nauthor a\n\nparent {name}\ntree {name}\n");
        let commit = object("commit", text.into_bytes());
        assert_eq!((commit.tree(), commit.leads_to().len()), (Some(id(name)), 1));
        let whole = [b"100644 a\0".as_slice(), &[7; 20], b"40000 b\0", &[8; 20]].concat();
        for cut in 0..whole.len() {
            let tree = object("tree", whole[..cut].to_vec());
            assert_eq!(tree.entry(b"a").is_some(), cut >= 29, "{cut}");
            assert_eq!(tree.entry(b"b"), None, "{cut}");
        }
        assert_eq!(object("tree", whole).entry(b"b").unwrap().mode, 0o40000);
    }
}
