//! Arguments of `relay`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use model::relay::{ClientName, SOCKET_MODE};
use protocol::cost::Usd;

use super::ProviderArg;
use super::values::amount;

/// Arguments of `relay`.
#[derive(Debug, Args)]
pub(crate) struct RelayArgs {
    /// Address: unix:DIR with one socket per client, or 127.0.0.1:PORT
    #[arg(long, value_name = "PLACE", value_parser = place)]
    pub listen: ListenPlace,
    /// Name of a client; its socket is DIR/NAME/relay.sock
    #[arg(long = "client", value_name = "NAME", required = true, value_parser = name)]
    pub clients: Vec<ClientName>,
    /// API to relay; may be repeated [default: from settings]
    #[arg(long = "provider", value_enum, value_name = "PROVIDER")]
    pub providers: Vec<ProviderArg>,
    /// Address of the provider's API [default: from settings]
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Model that clients may use [default: every model with a price]
    #[arg(long = "model", value_name = "NAME")]
    pub models: Vec<String>,
    /// Limit of cost per client, in US dollars
    #[arg(long, value_name = "USD", value_parser = amount)]
    pub max_usd: Option<Usd>,
    /// Limit of tokens per client, prompts and replies together
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// Limit of tokens per reply [default: 32000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_reply_tokens: Option<u64>,
    /// Owner of each socket and its directory
    #[arg(long, value_name = "UID[:GID]", value_parser = owner)]
    pub socket_owner: Option<(u32, Option<u32>)>,
    /// File mode of each socket, in octal
    #[arg(long, value_name = "MODE", value_parser = mode, default_value = "600")]
    pub socket_mode: u32,
    /// With 127.0.0.1:PORT: file of the client's token, created if missing
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// The value of `--listen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenPlace {
    /// A directory of sockets.
    Directory(PathBuf),
    /// An address of this machine.
    Loopback(SocketAddr),
}

fn place(text: &str) -> Result<ListenPlace, String> {
    if let Some(directory) = text.strip_prefix("unix:") {
        let directory = PathBuf::from(directory);
        return if directory.is_absolute() {
            Ok(ListenPlace::Directory(directory))
        } else {
            Err("expected an absolute path behind unix:".to_owned())
        };
    }
    match text.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Ok(ListenPlace::Loopback(address)),
        Ok(_) => Err("expected an address of this machine, as in 127.0.0.1:8099".to_owned()),
        Err(_) => Err("expected unix:DIR or 127.0.0.1:PORT".to_owned()),
    }
}

fn name(text: &str) -> Result<ClientName, String> {
    ClientName::new(text).map_err(|error| error.to_string())
}

fn owner(text: &str) -> Result<(u32, Option<u32>), String> {
    let (uid, gid) = text.split_once(':').map_or((text, None), |(uid, gid)| (uid, Some(gid)));
    let number = |text: &str| {
        text.parse().map_err(|_| "expected UID or UID:GID in numbers, as in 1000 or 1000:1000".to_owned())
    };
    Ok((number(uid)?, gid.map(number).transpose()?))
}

fn mode(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode & !0o666 == 0 && mode & SOCKET_MODE == SOCKET_MODE => Ok(mode),
        _ => Err("expected 600, 660 or 666".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_owners_and_modes_are_what_they_say() {
        assert_eq!(place("unix:/run/r"), Ok(ListenPlace::Directory("/run/r".into())));
        assert_eq!(place("[::1]:80"), Ok(ListenPlace::Loopback("[::1]:80".parse().unwrap())));
        for text in ["unix:run", "0.0.0.0:80", "192.168.1.1:80", "/run/r", ""] {
            assert!(place(text).is_err(), "{text}");
        }
        assert_eq!((owner("5"), owner("5:6")), (Ok((5, None)), Ok((5, Some(6)))));
        assert!(owner("root").is_err() && owner("5:").is_err());
        assert_eq!((mode("600"), mode("660"), mode("0666")), (Ok(0o600), Ok(0o660), Ok(0o666)));
        assert!(["777", "60", "4600", "", "rw"].iter().all(|text| mode(text).is_err()));
    }
}
