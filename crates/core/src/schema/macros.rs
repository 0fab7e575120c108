//! The macros that make a struct, an enum of structs, or an enum of names a part of a scenario.

/// Make a struct the table of a scenario: `table! { /// About it. pub struct Params "kind" { /// About the key. key: Type = takes, default; } }`.
/// Without a default the key is required, or, if it is an [`Option`], may be absent.
#[macro_export]
macro_rules! table {
    (
        $(#[doc = $about:literal])+
        $vis:vis struct $name:ident $kind:literal {
            $($(#[doc = $key_about:literal])+ $key:ident: $type:ty = $takes:expr $(, $default:expr)?;)*
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name {
            $($(#[doc = $key_about])+ pub $key: $type,)*
        }

        impl $name {
            /// Its description.
            $vis const TABLE: &'static $crate::schema::Table = &$crate::schema::Table {
                kind: $kind,
                about: concat!($($about, "\n"),+),
                keys: &[$($crate::schema::Key {
                    name: stringify!($key),
                    about: concat!($($key_about, "\n"),+),
                    takes: $takes,
                    absent: || $crate::schema::absent::<$type>($crate::default_of!($type $(, $default)?)),
                }),*],
            };

            /// What `value` gives, and of the rest what is here.
            #[allow(dead_code, unused_mut, unused_variables, reason = "few tables have variants; some have no keys")]
            $vis fn over(&self, value: &$crate::schema::Value) -> Result<Self, $crate::schema::Refusal> {
                let reader = $crate::schema::Reader::new(value, Self::TABLE)?;
                let mut keys = 0..;
                let mut next = || keys.next().expect("invariant: endless");
                Ok($name { $($key: reader.key(next(), || Some(self.$key.clone()))?,)* })
            }
        }

        impl $crate::schema::Described for $name {
            #[allow(unused_mut, unused_variables, reason = "a table may have no keys")]
            fn read(value: &$crate::schema::Value) -> Result<Self, $crate::schema::Refusal> {
                let reader = $crate::schema::Reader::new(value, Self::TABLE)?;
                let mut keys = 0..;
                let mut next = || keys.next().expect("invariant: endless");
                Ok($name {
                    $($key: reader.key(next(), || $crate::default_of!($type $(, $default)?))?,)*
                })
            }
            fn write(&self) -> $crate::schema::Value {
                $crate::schema::Value::Table(vec![
                    ("kind".to_string(), $crate::schema::Value::Text($kind.to_string())),
                    $((stringify!($key).to_string(), $crate::schema::Described::write(&self.$key)),)*
                ])
            }
        }
    };
}

/// The default of a key of [`table!`](crate::table).
#[doc(hidden)]
#[macro_export]
macro_rules! default_of {
    ($type:ty) => {
        <$type as $crate::schema::Described>::absent()
    };
    ($type:ty, $default:expr) => {
        Some($default)
    };
}

/// Make an enum of tables, between which the key `kind` chooses: `family! { /// About them. pub enum Config "name" { Variant(Params), } }`.
#[macro_export]
macro_rules! family {
    (
        $(#[doc = $about:literal])+
        $vis:vis enum $name:ident $family:literal { $($variant:ident($params:ty),)+ }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        $vis enum $name {
            $(#[doc = concat!("See [`", stringify!($params), "`].")] $variant($params),)+
        }

        impl $name {
            /// Every kind.
            $vis const FAMILY: &'static $crate::schema::Family =
                &$crate::schema::Family { name: $family, tables: &[$(<$params>::TABLE),+] };
        }

        impl $crate::schema::Described for $name {
            fn read(value: &$crate::schema::Value) -> Result<Self, $crate::schema::Refusal> {
                let kind = match value.get("kind") {
                    Some($crate::schema::Value::Text(kind)) => kind.as_str(),
                    _ => "",
                };
                $(if kind == <$params>::TABLE.kind {
                    return $crate::schema::Described::read(value).map($name::$variant);
                })+
                let kinds: Vec<&str> = Self::FAMILY.tables.iter().map(|table| table.kind).collect();
                Err($crate::schema::Refusal::new(format_args!("{kind:?}"), kinds.join(", ")).within("kind"))
            }
            fn write(&self) -> $crate::schema::Value {
                match self {
                    $($name::$variant(params) => $crate::schema::Described::write(params),)+
                }
            }
        }
    };
}

/// Give the variants of an enum names in a scenario: `choice! { Close: Server "server", Client "client" }`.
#[macro_export]
macro_rules! choice {
    ($name:ident: $($variant:ident $text:literal),+) => {
        impl $name {
            /// What a key takes that chooses one.
            pub const TAKES: $crate::schema::Takes = $crate::schema::Takes::Choice(&[$($text),+]);
        }

        impl $crate::schema::Described for $name {
            fn read(value: &$crate::schema::Value) -> Result<Self, $crate::schema::Refusal> {
                match value {
                    $($crate::schema::Value::Text(text) if text == $text => Ok($name::$variant),)+
                    _ => Err($crate::schema::Refusal::new(value, [$($text),+].join(", "))),
                }
            }
            fn write(&self) -> $crate::schema::Value {
                $crate::schema::Value::Text(match self { $($name::$variant => $text,)+ }.to_string())
            }
        }
    };
}
