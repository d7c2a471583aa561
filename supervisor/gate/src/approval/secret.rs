//! Detects forms that seem to ask for a secret. No server may ask for secrets.
//!
//! This is a heuristic with a list of words. A server can evade it by other words.

use ipc::form::FormField;

/// Words that mark a name as a secret if a word of the name equals one of them or ends with it.
const WORDS: &[&str] = &[
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "creds",
    "cvc",
    "cvv",
    "jwt",
    "key",
    "keys",
    "mnemonic",
    "otp",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "passwort",
    "pat",
    "pin",
    "privatekey",
    "pwd",
    "secret",
    "secrets",
    "seed",
    "ssn",
    "token",
    "tokens",
    "totp",
];

/// Texts that mark a name as a secret at any position.
const PARTS: &[&str] = &["apikey", "passphrase", "passwd", "password", "passwort", "privatekey", "secret"];

/// Words for a secret that make a whole sentence suspect.
const SENTENCES: &[&str] = &[
    "access key",
    "access token",
    "api key",
    "api token",
    "auth token",
    "credit card",
    "passcode",
    "passphrase",
    "password",
    "passwd",
    "passwort",
    "personal access token",
    "pin code",
    "private key",
    "recovery code",
    "recovery phrase",
    "secret key",
    "security code",
    "seed phrase",
    "verification code",
];

/// Returns the words of a form that seem to ask for a secret; `None` if there are none.
pub fn secret_in(message: &str, fields: &[FormField]) -> Option<String> {
    let in_field = fields.iter().find_map(|field| {
        let is_named = |text: &str| words(text).iter().any(|word| is_secret(word)) || has_sentence(text);
        let named = is_named(&field.name) || field.title.as_deref().is_some_and(is_named);
        (named || has_sentence(&field.about)).then(|| field.name.clone())
    });
    in_field.or_else(|| has_sentence(message).then(|| message.chars().take(80).collect()))
}

fn is_secret(word: &str) -> bool {
    WORDS.contains(&word) || PARTS.iter().any(|part| word.contains(part))
}

fn has_sentence(text: &str) -> bool {
    let text = words(text).join(" ");
    let padded = format!(" {text} ");
    SENTENCES
        .iter()
        .any(|words| padded.contains(&format!(" {words} ")) || padded.contains(&format!(" {words}s ")))
}

/// Returns the words of a text in lower case. For `apiKey_2` these are `api`, `key`, `2` and the joined `apikey2`.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for run in text.split(|c: char| !is_of_word(c)).filter(|run| !run.is_empty()) {
        let mut word = String::new();
        let mut was_lower = false;
        for c in run.chars().filter(|c| c.is_alphanumeric()) {
            if c.is_uppercase() && was_lower && !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            was_lower = c.is_lowercase();
            word.extend(plain(c).to_lowercase());
        }
        words.push(word);
    }
    words
}

/// True for characters that do not end a word: letters, digits, and invisible characters.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// Returns the Latin letter that looks like `c`, a letter of another script; `c` itself if there is none.
const fn plain(c: char) -> char {
    match c {
        'а' | 'α' => 'a',
        'е' | 'ε' => 'e',
        'о' | 'ο' => 'o',
        'р' | 'Р' | 'ρ' | 'Ρ' => 'p',
        'с' => 'c',
        'у' | 'υ' => 'y',
        'к' | 'К' | 'κ' | 'Κ' => 'k',
        'т' | 'Т' | 'τ' | 'Τ' => 't',
        'ѕ' | 'Ѕ' => 's',
        'і' | 'ι' => 'i',
        'ѡ' | 'ω' => 'w',
        'ԁ' => 'd',
        'п' => 'n',
        // Letters of full width.
        '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}' => narrow(c),
        _ => c,
    }
}

const fn narrow(c: char) -> char {
    match char::from_u32(c as u32 - 0xfee0) {
        Some(narrow) => narrow,
        None => c,
    }
}

#[cfg(test)]
mod tests {
    use ipc::form::FieldKind;

    use super::*;

    fn found(name: &str, title: &str, about: &str, message: &str) -> bool {
        let field = FormField {
            name: name.to_owned(),
            title: Some(title.to_owned()),
            about: about.to_owned(),
            required: true,
            kind: FieldKind::YesNo { default: None },
        };
        secret_in(message, &[field]).is_some()
    }

    #[test]
    fn names_titles_and_sentences_that_ask_for_a_secret_are_found() {
        for name in [
            "password",
            "Password",
            "userPassword",
            "user_password2",
            "db-passwd",
            "mypassword",
            "API_KEY",
            "apiKey",
            "apikey",
            "key",
            "github_token",
            "accessToken",
            "token",
            "clientSecret",
            "PIN",
            "otp",
            "cvv",
            "credentials",
            "private.key",
            "pass\u{200b}word",
            "p\u{430}ssword",
            "ｐａｓｓｗｏｒｄ",
            "seed",
            "Bearer",
        ] {
            assert!(found(name, "", "", ""), "{name}");
            assert!(found("a", name, "", ""), "title {name}");
        }
        for sentence in [
            "Enter your password.",
            "your API key",
            "the recovery phrase, please",
            "a Personal Access Tokens",
        ] {
            assert!(found("a", "", sentence, ""), "about {sentence}");
            assert!(found("a", "", "", sentence), "message {sentence}");
        }
    }

    #[test]
    fn ordinary_forms_are_not_suspected() {
        for name in [
            "name",
            "email",
            "keyboard",
            "monkey",
            "author",
            "count",
            "branch",
            "pinned",
            "passenger",
            "compass",
            "tokenizer",
        ] {
            assert!(!found(name, name, "The name of the branch.", "Which branch do you want?"), "{name}");
        }
        assert!(secret_in("Go on?", &[]).is_none());
    }
}
