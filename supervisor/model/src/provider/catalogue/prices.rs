//! Parses prices in a file: `{ input = 3, output = 15, cache_read = 0.3, … }`.

use protocol::cost::{LongPrompt, Price, Prices, Rates};
use toml_edit::{Item, TableLike, Value};

use super::field::positive;

pub(super) const EXPECTED: &str = "{ input = …, output = … } in US dollars for a million tokens, with cache_read, cache_write_5m, \
     cache_write_1h where they differ from input, long_prompt = { above = TOKENS, input = …, … } where long prompts cost \
     more, and nothing else";

/// Key of the prices for long prompts. Their table also has [`ABOVE`], the length in tokens above which they apply.
const LONG: &str = "long_prompt";
const ABOVE: &str = "above";

pub(super) fn read(item: &Item) -> Option<Prices> {
    let table = item.as_table_like()?;
    let long = match table.get(LONG) {
        None => None,
        Some(item) => {
            let table = item.as_table_like()?;
            let above = positive(table.get(ABOVE)?.as_value()?)?;
            Some(LongPrompt { above, rates: rates(table, ABOVE)? })
        }
    };
    Some(Prices { rates: rates(table, LONG)?, long })
}

/// Parses the prices in a table; `None` if they are invalid. Besides prices, the table may have only the key `besides`.
fn rates(table: &dyn TableLike, besides: &str) -> Option<Rates> {
    const NAMES: [&str; 5] = ["input", "output", "cache_read", "cache_write_5m", "cache_write_1h"];
    if !table.iter().all(|(name, _)| name == besides || NAMES.contains(&name)) {
        return None;
    }
    let said = |name| table.get(name).map(price);
    let (input, output) = (said("input")??, said("output")??);
    let or_input = |name| said(name).unwrap_or(Some(input));
    Some(Rates {
        input,
        output,
        cache_write_5m: or_input("cache_write_5m")?,
        cache_write_1h: or_input("cache_write_1h")?,
        cache_read: or_input("cache_read")?,
    })
}

fn price(item: &Item) -> Option<Price> {
    match item.as_value()? {
        Value::Integer(number) => number.value().to_string().parse().ok(),
        // The shortest text of a float is the text in the file.
        Value::Float(number) => number.value().to_string().parse().ok(),
        _ => None,
    }
}

pub(super) fn shown(prices: &Prices) -> String {
    let rates = |rates: &Rates| {
        let Rates { input, output, cache_write_5m, cache_write_1h, cache_read } = rates;
        format!(
            "input = {input}, output = {output}, cache_read = {cache_read}, cache_write_5m = {cache_write_5m}, cache_write_1h = {cache_write_1h}"
        )
    };
    let long =
        prices.long.map(|long| format!(", {LONG} = {{ {ABOVE} = {}, {} }}", long.above, rates(&long.rates)));
    format!("{{ {}{} }}", rates(&prices.rates), long.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use toml_edit::Document;

    use super::*;

    fn of(text: &str) -> Option<String> {
        let document = Document::parse(format!("p = {text}")).expect(text);
        read(&document["p"]).map(|prices| shown(&prices))
    }

    #[test]
    fn prices_are_read_exactly_and_shown_as_they_are_written() {
        let whole = "{ input = 3, output = 15, cache_read = 0.3, cache_write_5m = 3.75, cache_write_1h = 6 }";
        assert_eq!(of(whole).as_deref(), Some(whole));
        assert_eq!(
            of("{ input = 0.1, output = 0.5 }").as_deref(),
            Some(
                "{ input = 0.1, output = 0.5, cache_read = 0.1, cache_write_5m = 0.1, cache_write_1h = 0.1 }"
            )
        );
        let long = of("{ input = 1, output = 2, long_prompt = { above = 9, input = 2, output = 4 } }");
        assert!(long.is_some_and(|text| text.contains("long_prompt = { above = 9, input = 2,")));
    }

    #[test]
    fn what_is_no_price_is_refused() {
        for text in [
            "3",
            "{}",
            "{ input = 3 }",
            "{ input = 3, output = 15, more = 1 }",
            "{ input = 3, output = -15 }",
            "{ input = nan, output = 1 }",
            "{ input = inf, output = 1 }",
            "{ input = 0.0000001, output = 1 }",
            "{ input = \"3\", output = 1 }",
            "{ input = 3, output = 15, cache_read = -1 }",
            "{ input = 3, output = 15, above = 1 }",
            "{ input = 3, output = 15, long_prompt = { input = 3, output = 15 } }",
            "{ input = 3, output = 15, long_prompt = { above = 0, input = 3, output = 15 } }",
            "{ input = 3, output = 15, long_prompt = 3 }",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
