use std::collections::BTreeSet;

use super::digits::DIGITS;
use super::*;

#[test]
fn digits_are_read_as_people_type_them() {
    let code: Code = "482-109-357".parse().unwrap();
    for text in ["482109357", " 482 109 357 ", "482-109 357", "4-8-2-1-0-9-3-5-7"] {
        assert_eq!(text.parse(), Ok(code.clone()), "{text}");
    }
    assert_eq!(code.to_string(), "482-109-357");
    assert_eq!(code.password().as_bytes(), b"482109357");
    assert_eq!(format!("{code:?}"), "Code(..)");
    let zeros: Code = "000-000-007".parse().unwrap();
    assert_eq!(zeros.to_string(), "000-000-007");
    assert_eq!(zeros.password().as_bytes(), b"000000007");
}

#[test]
fn words_are_read_as_people_type_them() {
    let code: Code = "cabana-anvil".parse().unwrap();
    for text in ["cabana anvil", " Cabana-ANVIL ", "7-cabana-anvil", "12 cabana  anvil"] {
        assert_eq!(text.parse(), Ok(code.clone()), "{text}");
    }
    assert_eq!(code.to_string(), "cabana-anvil");
    assert_eq!(code.password().as_bytes(), b"cabana-anvil");
    assert_ne!(code, "anvil-cabana".parse().unwrap());
    assert_eq!(format!("{code:?}"), "Code(..)");
}

#[test]
fn a_relay_code_has_a_number_and_two_words() {
    let code: RelayCode = "7-cabana-anvil".parse().unwrap();
    assert_eq!((code.number, code.to_string().as_str()), (7, "7-cabana-anvil"));
    for text in ["007 Cabana Anvil", " 7-cabana-anvil\t"] {
        assert_eq!(text.parse(), Ok(code.clone()), "{text}");
    }
    assert!(!format!("{code:?}").contains("anvil"));
    for text in [
        "",
        "7",
        "-",
        "7-cabana",
        "0-cabana-anvil",
        "7-cabana-anvil-anvil",
        "4294967296-cabana-anvil",
        "+7-cabana-anvil",
        "cabana-anvil",
        "482-109-357",
        "7-cabana-anvil.example",
        "laptop",
    ] {
        assert_eq!(text.parse::<RelayCode>(), Err(RelayCodeError::Form), "{text}");
    }
    let slip = RelayCodeError::UnknownWord("anvill".to_owned());
    assert_eq!("7-cabana-anvill".parse::<RelayCode>(), Err(slip));
}

#[test]
fn what_is_no_code_is_refused() {
    for text in ["", "-", "48210935", "4821093570", "482-109-35a", "٤٨٢١٠٩٣٥٧", "+482109357"]
    {
        assert_eq!(text.parse::<Code>(), Err(CodeError::Form), "{text}");
    }
    for text in ["cabana", "cabana-anvil-cabana", "cabana7-anvil"] {
        assert_eq!(text.parse::<Code>(), Err(CodeError::Form), "{text}");
    }
    let slip = Err(CodeError::UnknownWord("anvill".to_owned()));
    assert_eq!("cabana-anvill".parse::<Code>(), slip);
    assert_eq!("7-cabana-anvill".parse::<Code>(), slip);
}

#[test]
fn random_codes_differ_and_are_read_again() {
    for random in [Code::random, Code::random_words] {
        let codes: Vec<Code> = (0..20).map(|_| random().unwrap()).collect();
        let texts: BTreeSet<String> = codes.iter().map(Code::to_string).collect();
        assert_eq!(texts.len(), codes.len());
        for code in codes {
            assert_eq!(code.to_string().parse(), Ok(code));
        }
    }
}

/// Guesses are limited to what nine random digits bear.
#[test]
fn all_digits_of_a_code_are_random() {
    let codes: Vec<String> = (0..400).map(|_| Code::random().unwrap().to_string()).collect();
    assert!(codes.iter().all(|code| code.len() == DIGITS + 2));
    for place in 0..DIGITS {
        let digits: BTreeSet<char> =
            codes.iter().filter_map(|c| c.replace('-', "").chars().nth(place)).collect();
        // A digit of ten is missing in 400 with a probability of 5 in 10^18.
        assert_eq!(digits.len(), 10, "digit {place}: {digits:?}");
    }
}

/// Guesses are limited to what 7,772 words at each of two places bear.
#[test]
fn every_word_of_the_list_is_reached_at_both_places() {
    let words = |place: usize| -> BTreeSet<String> {
        let word =
            |n| Words::from_random(n, n).to_string().split('-').nth(place).map(str::to_owned);
        (0..7772).filter_map(word).collect()
    };
    assert_eq!((words(0).len(), words(1).len()), (7772, 7772));
    assert!(words(0).iter().all(|w| w.bytes().all(|b| b.is_ascii_lowercase()) && w.len() >= 3));
}
