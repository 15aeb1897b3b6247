//! Text in pages.

/// Text as an element or an attribute of a page may hold it.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_text() {
        assert_eq!(escape("<b>&\"x\"</b>.csv"), "&lt;b&gt;&amp;&quot;x&quot;&lt;/b&gt;.csv");
    }
}
